"""All rows, in the order of the table."""

from __future__ import annotations

from benchmarks import (
    bayes,
    classification,
    embeddings,
    filters,
    herding,
    inference,
    quadrature,
    regression,
    simulation,
)
from benchmarks._row import Row

JOBS = (embeddings, herding, bayes, filters, simulation, inference, classification, regression, quadrature)
ROWS: dict[str, Row] = {row.name: row for job in JOBS for row in job.ROWS}
