r"""Likelihood-free inference of a population's dynamics. Hsu (2019), section 4.9.2, figures 4.2 and 4.3.

Six parameters, ten statistics (`_simulators.blowflies`). With `--data DIR` the observation is Nicholson's series, the column
`pop` of `DIR/blowfly.csv`; otherwise it is one simulated at known parameters. There being no true parameters for the former,
the error is that of simulations at the posterior mean. Squared differences of 1,000 simulations from the observation are
averaged for each statistic, divided by the same under the prior (10,000 simulations), and averaged over the statistics:
the NMSE, 100 % for the prior.

| column | what it is |
|---|---|
| KELFI | `method="kelfi"` as it comes |
| KELFI, marginal | `learn="marginal"`: one epsilon and one lengthscale by maximising (4.5), lambda = 1e-3 beta |
| DME | `method="dme"` as it comes |
| KBR | median distances, regularisers 1e-4; from the posterior mode |
| K-ABC | median distance, regulariser 1e-4 |
| K-ABC (S) | lengthscale and regulariser chosen by leave-one-out, where the thesis scaled the median distance by hand |
| ..., spreads | the same with each statistic divided by its spread over the simulations, and no ranks |
| ..., own units | the same with statistics as they are |
| rejection | `method="rejection"` as it comes |
| MCMC-ABC | epsilon 5, proposals of 10 % of the prior's standard deviations |
| SL-ABC | epsilon 0.5, 10 simulations at each place |
| ASL-ABC | epsilon 0.5, 10 simulations and 10 more at a time, error 0.3 |
| GPS-ABC | epsilon 2, 5 simulations more at a time, error 0.05 |
| KELFI, not adjusted | `adjust=False`: the kernel means posterior itself, its settings learned as they come |
| KELFI, rounds | `rounds=4`: as many simulations, three quarters of them about the posterior so far |

The kernel methods of a repeat share their simulations, a Halton sequence, of which smaller numbers are the first. Epsilons
of the thesis are in units of the statistics. It does not say in which units its kernel methods compare them, so they are run
in several. As it comes, KELFI compares statistics with long tails by their ranks, and adjusts the posterior by regression
where that scores better, which is not in the thesis; KBR and K-ABC divide by spreads.
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from .._result import Result
from .._simulators import BLOWFLY_TRUTH, blowflies
from .._study import Study
from ._claims import claims
from ._figures import error_figure, relevance_figure
from ._methods import once, task_of
from ._reading import error_table, note, range_table, relevance_table

TITLE = "Likelihood-free inference of blowfly dynamics with few simulations"
SOURCE = "Hsu (2019), section 4.9.2, figures 4.2 and 4.3"
DATA = "blowfly.csv"

_ARD_AT = 300


def run(study: Study) -> Result:
    """All methods over numbers of simulations."""
    given = study.read(DATA, "pop")
    series = blowflies(BLOWFLY_TRUTH[None], np.random.default_rng(1))[0] if given is None else given
    sizes = [40] if study.quick else [50, 100, 300, 600, 1000]
    settings = {
        "observation": "simulated" if given is None else f"{DATA}, {hashlib.sha256(series.tobytes()).hexdigest()[:8]}",
        "sizes": sizes,
        "prior_simulations": 300 if study.quick else 10_000,
        "test_simulations": 200 if study.quick else 1000,
        "gps_steps": 50 if study.quick else 1000,
        "ard_at": sizes[0] if study.quick else _ARD_AT,
        "repeats": 1 if study.quick else 10,
    }
    task = task_of(series, settings["prior_simulations"])
    cases = [{"simulations": m} for m in sizes]
    runs = study.repeat(functools.partial(once, task), settings, cases, paired=True)
    figures = [study.save(error_figure(runs)), study.save(relevance_figure(runs, settings), "relevance")]
    tables = [error_table(runs), range_table(runs), relevance_table(runs, settings)]
    return Result(settings, tables, claims(runs, settings), figures, runs, [note(runs, given is None)])
