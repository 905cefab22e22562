"""`python -m kernelbayes.cli` does what the command does."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
