"""One sentence to the user, on standard error."""

from __future__ import annotations

import sys


def say(sentence):
    try:
        sys.stderr.write(f"cublame: {sentence}.\n")
    except Exception:
        # Without a standard error there is nobody to tell.
        pass
