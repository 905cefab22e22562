"""A zoo of likelihood-free problems whose posteriors are known.

    from kernelbayes.experiments.posterior_zoo import PROBLEMS, evaluate

    problem = PROBLEMS["crescent"]
    theta, x = problem.runs(1000, seed=0)          # parameters (1000, d) and outputs (1000, p)
    observed = problem.observation(0)              # the first observation (p,)
    ...                                            # draws (1000, d) of a method's posterior
    evaluate(problem, 0, draws, folder="cache")    # c2st, mean_error, sd_ratio, coverage

`evaluate` makes 10,000 exact draws when first asked about an observation and keeps them in the folder.
"""

from __future__ import annotations

from ._counts import COUNTS
from ._dynamics import DYNAMICS
from ._linear import JUNK, LINEAR
from ._metrics import MEASURES, evaluate, measures
from ._problem import ZooProblem
from ._reference import exact_draws, reference
from ._regressions import REGRESSIONS
from ._shapes import SHAPES

__all__ = ["MEASURES", "PROBLEMS", "ZooProblem", "evaluate", "exact_draws", "measures", "reference"]

#: By name: kind by kind, problems to tune on before problems held out.
PROBLEMS = {p.name: p for p in (*LINEAR, *SHAPES, *COUNTS, *DYNAMICS, *REGRESSIONS, *JUNK)}
