"""Likelihood-free inference: a simulator, a prior, an observation, and a few hundred runs.

    infer       simulator, prior, observation      -> ParameterPosterior
    calibrate   the same for known truths          -> Calibration

`_infer.py` goes from the one to the other: simulate, learn, simulate again. `_prior.py` and `_blocks.py` are priors and
their Gaussian coordinates; `_likelihood.py`, `_kelfi.py`, `_dme.py`, `_kernel_methods.py`, `_abc.py`, `_synthetic.py`,
`_surrogate.py` the methods, each an object with its settings whose `infer` makes an `Inference` of a `Problem`, and
`_methods.py` their list; `_statistics.py` what a likelihood is learned of, `_epsilon.py` the other ways to compare an
observation with simulations; `_campaign.py` and `_search.py` the runs behind them; `_law.py`, `_particles.py`,
`_tempering.py` and `_importance.py` what a posterior is made of; `_posterior.py` what the user holds, and `_again.py` what
else it can be asked.
"""

from ._abc import MarkovABC, SequentialABC
from ._calibrate import Calibration, calibrate
from ._dme import DME
from ._epsilon import EpsilonKernel, GaussianEpsilon, IidEpsilon, MMDEpsilon, SpatioTemporalEpsilon
from ._infer import infer
from ._kelfi import KELFI
from ._kernel_methods import DoubleKernelABC, KernelABC, KernelBayes, Rejection
from ._likelihood import LearnedLikelihood
from ._methods import METHODS
from ._posterior import ParameterPosterior
from ._predictive import PredictiveCheck
from ._prior import Prior
from ._surrogate import SurrogateABC
from ._synthetic import AdaptiveSynthetic, SyntheticLikelihood

__all__ = [
    "DME",
    "KELFI",
    "METHODS",
    "AdaptiveSynthetic",
    "Calibration",
    "DoubleKernelABC",
    "EpsilonKernel",
    "GaussianEpsilon",
    "IidEpsilon",
    "KernelABC",
    "KernelBayes",
    "LearnedLikelihood",
    "MMDEpsilon",
    "MarkovABC",
    "ParameterPosterior",
    "PredictiveCheck",
    "Prior",
    "Rejection",
    "SequentialABC",
    "SpatioTemporalEpsilon",
    "SurrogateABC",
    "SyntheticLikelihood",
    "calibrate",
    "infer",
]
