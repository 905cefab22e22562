r"""Where to put the nodes of a quadrature rule. Quadrature notes, section 3.

The notes list four ways to choose nodes, each "weighted appropriately", and four examples, and ask two questions: is the
improvement from 3 to 4 larger than that from 1 or 2 to 3, and how do these improvements change with the dimension? They
claim nothing, so that the claims here are what was found, and each run judges them anew.

| notes | here | nodes |
|---|---|---|
| 1 | `iid` | draws of the distribution |
| 2 | `diagonal` | draws with density k(x, x) |
| 3 | `leverage` | draws with the leverage density, at the regulariser at which a third of n terms count |
| 4 | `dpp` | the determinantal process of the first n eigenfunctions |
| | `herding`, `greedy`, `sobol` | what the notes do not have: herding, sequential Bayesian quadrature, a design |

The measure is the worst-case error over functions of norm one, which needs no integrand. The weights are optimal, that is
those of Bayesian quadrature; importance weights 1 / (n q) and uniform ones are beside them in a table. An *improvement* is
a ratio of errors, as a geometric mean over repeats.

A second part has integrands with known integrals, to see whether the standard deviations of `kb.integrate` can be believed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .._result import Result
from .._study import Study
from ._claims import claims, notes
from ._errors import worst_case
from ._examples import BALL, EXAMPLES
from ._figures import dimension_figure, error_figure
from ._integrals import integral_claims, integral_table, integrals
from ._reading import error_table, gain_table, rate_table, weight_table

TITLE = "Nodes of kernel quadrature: draws, leverages, determinantal processes and designs"
SOURCE = "Quadrature notes, section 3"


def run(study: Study) -> Result:
    """Worst-case errors of all examples, and real integrands."""
    settings = _settings(study.quick)
    runs, estimates = worst_case(study, settings), integrals(study, settings)
    runs = dataclasses.replace(runs, seconds=runs.seconds + estimates.seconds)
    figures = [study.save(error_figure(runs)), study.save(dimension_figure(runs), "dimension")]
    tables = [error_table(runs), gain_table(runs), rate_table(runs), weight_table(runs), integral_table(estimates)]
    found = [*claims(runs), *integral_claims(estimates)]
    return Result(settings, tables, found, figures, runs, notes(runs))


def _settings(quick: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "sizes": [16, 32] if quick else [4, 8, 16, 32, 64, 128],
        "dimensions": [1, 2] if quick else [1, 2, 3, 4, 5],
        "ball": BALL,
        "integral_repeats": 2 if quick else 10,
        "evaluations": {"1": 32, "2": 64, "3": 48 if quick else 100, "5": 200},
        "repeats": 2 if quick else 20,
    }
    if quick:  # without the two that take longest
        settings["examples"] = [name for name in EXAMPLES if name not in ("beta", "fractional")]
    return settings
