"""Kernel Bayes filters on a rotation with noise. Xu et al. (2022), section 5.2 and figure 2; see `_circling`."""

from __future__ import annotations

from . import _circling
from ._result import Result
from ._study import Study
from ._systems import ROTATION

TITLE = "Filtering a rotation: two of Bayes' rules against filters that know the dynamics"
SOURCE = "Xu et al. (2022), section 5.2 and figure 2 (rotation)"

_SCENARIO = _circling.Scenario("Rotation", ROTATION, kalman_ahead=True)


def run(study: Study) -> Result:
    """Errors over training lengths, paired tests, and the automatic choice beside a grid."""
    return _circling.run_on(study, _SCENARIO)
