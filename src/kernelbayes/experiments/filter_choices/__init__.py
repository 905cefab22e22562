r"""Which rule and which representation for a filter: all of them on the same sequences, of three systems.

| system | source | n | what is hard about it |
|---|---|---|---|
| oscillatory | Xu et al. (2022), equation (5) | 300 | the motion is far from linear |
| SSM 2a | Kanagawa (2016), table 4.2 | 300 | the state is the spread of the observation, whose mean says nothing |
| SSM 3a | the same | 200 | as 2a, with ten observations at a time: a kernel whose rank is n |

A log of n steps is learned from, and 400 new steps are followed. Errors are squared and summed over the coordinates. All
filters choose their settings as they do by default; one table says what more and less of that is worth. A representation is
that of observations and of states alike.

| method | knows |
|---|---|
| a rule's name | the log: `kb.KernelBayesFilter` |
| `monte carlo` | the log, and how states move: `kb.KernelMonteCarloFilter` |
| `regression` | the log, but nothing of time: the mean of the state given the observation |
| `particles` | the whole system: a particle filter, the floor |

Seconds are the processor's, so that a busy machine does not show in them.
"""

from __future__ import annotations

from typing import Any

from ...filters import KernelBayesFilter
from .._result import Result
from .._study import Study
from ._cases import SYSTEMS, compared
from ._claims import claims
from ._figures import draw
from ._reading import tables

TITLE = "Which filter: every rule and every representation on three systems"
SOURCE = "Systems of Xu et al. (2022), section 5.2, and Kanagawa (2016), table 4.2"


def run(study: Study) -> Result:
    """Rules, representations, lengths of the log and tuning, on the same sequences."""
    settings = _settings(study.quick)
    runs = compared(study, settings)
    figures = [study.save(draw(runs, settings))]
    return Result(settings, tables(runs, settings), claims(runs, settings), figures, runs)


def _settings(quick: bool) -> dict[str, Any]:
    return {
        "lengths": dict(zip(SYSTEMS, (100, 100, 60) if quick else (300, 300, 200), strict=True)),
        "sizes": [100, 300] if quick else [100, 300, 1000, 3000, 10_000],
        "test_steps": 100 if quick else 400,
        "tune": 2 if quick else KernelBayesFilter().tune,
        "other_tunes": [0, 4] if quick else [0, 50],
        "particles": 2000,
        "repeats": 2 if quick else 3,
    }
