"""kernelbayes."""
__version__ = "0.1.0.dev0"
from .kernels import *
