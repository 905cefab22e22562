"""Likelihood-free inference: a simulator, a prior, an observation, and a few hundred runs.

    infer       simulator, prior, observation      -> ParameterPosterior
    calibrate   the same for known truths          -> Calibration

`_prior.py` and `_blocks.py` are priors and their Gaussian coordinates; `_epsilon.py` the ways to compare an observation with
simulations; `_kelfi.py`, `_dme.py`, `_kernel_methods.py`, `_abc.py`, `_synthetic.py`, `_surrogate.py` the methods, each a
function of a `Problem` that returns an `Inference`; `_campaign.py` and `_search.py` the runs behind them; `_law.py` and
`_importance.py` what a posterior is made of; `_posterior.py` what the user holds.
"""

from ._calibrate import Calibration, calibrate
from ._epsilon import EpsilonKernel, GaussianEpsilon, IidEpsilon, MMDEpsilon, SpatioTemporalEpsilon
from ._infer import METHODS, infer
from ._posterior import ParameterPosterior
from ._predictive import PredictiveCheck
from ._prior import Prior

__all__ = [
    "METHODS",
    "Calibration",
    "EpsilonKernel",
    "GaussianEpsilon",
    "IidEpsilon",
    "MMDEpsilon",
    "ParameterPosterior",
    "PredictiveCheck",
    "Prior",
    "SpatioTemporalEpsilon",
    "calibrate",
    "infer",
]
