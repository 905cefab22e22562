"""`python -m kernelbayes` does what the command does."""

import sys

from kernelbayes.cli import main

if __name__ == "__main__":
    sys.exit(main())
