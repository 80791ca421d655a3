"""`python -m cublame run -- python train.py`: the program itself, with the same arguments."""

import sys

from .program import become

sys.exit(become(sys.argv[1:]))
