"""Kernel Bayes filters on an oscillating orbit. Xu et al. (2022), section 5.2 and figure 2; see `_circling`."""

from __future__ import annotations

from . import _circling
from ._result import Result
from ._study import Study
from ._systems import OSCILLATORY

TITLE = "Filtering an oscillating orbit, where linearised dynamics mislead the Kalman filter"
SOURCE = "Xu et al. (2022), section 5.2 and figure 2 (oscillatory)"

_SCENARIO = _circling.Scenario("Oscillatory", OSCILLATORY, kalman_ahead=False)


def run(study: Study) -> Result:
    """Errors over training lengths, paired tests, and the automatic choice beside a grid."""
    return _circling.run_on(study, _SCENARIO)
