"""A zoo of likelihood-free problems whose posteriors are known, and `kb.infer` beside neural methods on them.

    from kernelbayes.experiments.posterior_zoo import PROBLEMS, evaluate

    problem = PROBLEMS["crescent"]
    theta, x = problem.runs(1000, seed=0)          # parameters (1000, d) and outputs (1000, p)
    observed = problem.observation(0)              # the first observation (p,)
    ...                                            # draws (1000, d) of a method's posterior
    evaluate(problem, 0, draws, folder="cache")    # c2st, mean_error, sd_ratio, coverage

`evaluate` makes 10,000 exact draws when first asked about an observation, and keeps them in the folder. They come from
tempered sequential Monte Carlo on the known likelihood.

Half of the problems are there to choose settings on, half are held out; each kind has some of both, easy ones and hard ones.

| method | what it is |
|---|---|
| kb.infer | as it comes, from given simulations; KELFI: with `method="kelfi"` |
| kb.infer, rounds | `rounds=4`; not where each parameter vector is simulated five times, which is a design that is given |
| NPE, NLE | of the package sbi as they come, from the same simulations; trained once for all observations |
| SNPE, SNLE | the same in four rounds; 500 and 1,000 simulations and the first observation only, as they take long |

The neural methods need the package sbi (extra `bench`), and are left out where it is not installed. They work in Gaussian
coordinates of the prior. A method that fails counts with the worst C2ST. Seconds are those of the processor, with training.
"""

from __future__ import annotations

from .._result import Result
from .._study import Study
from . import _sbi
from ._claims import claims
from ._counts import COUNTS
from ._dynamics import DYNAMICS
from ._figures import scores_figure
from ._linear import JUNK, LINEAR
from ._methods import COUNT, METHODS, cells, fill
from ._metrics import MEASURES, evaluate, measures
from ._problem import ZooProblem
from ._reading import tables
from ._reference import DRAWS, exact_draws, reference
from ._regressions import REGRESSIONS
from ._shapes import SHAPES

__all__ = ["MEASURES", "PROBLEMS", "ZooProblem", "evaluate", "exact_draws", "measures", "reference", "run"]

TITLE = "Likelihood-free inference beside neural methods, on problems with known posteriors"
SOURCE = "this project"

#: By name: problems of the same kind beside each other.
PROBLEMS = {p.name: p for p in (*LINEAR, *SHAPES, *COUNTS, *DYNAMICS, *REGRESSIONS, *JUNK)}
_QUICK = ("linear-2", "linear-5-box", "crescent", "ring")


def run(study: Study) -> Result:
    """All methods on all problems, for several numbers of simulations."""
    problems = {name: PROBLEMS[name] for name in _QUICK} if study.quick else PROBLEMS
    sizes = (200,) if study.quick else (1000, 500, 200, 3000)
    there = _sbi.installed()
    methods = tuple(name for name, method in METHODS.items() if there or not method.sbi)
    settings = {
        "sizes": sorted(sizes),
        "problems": list(problems),
        "methods": list(methods),
        "rounds": COUNT,
        "exact_draws": DRAWS,
    }
    runs = fill(study, problems, list(cells(problems, sizes, methods)))
    notes = [] if there else ["sbi is not installed, so its methods are left out: pip install 'kernelbayes[bench]'"]
    return Result(settings, tables(runs, problems), claims(runs), [study.save(scores_figure(runs))], runs, notes)
