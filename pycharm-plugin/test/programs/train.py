"""Ends with the exception that torch raises for a failed launch."""

import os
import sys


def forward():
    raise RuntimeError("CUDA error: device-side assert triggered")  # @fault


def test_forward():
    forward()


if __name__ == "__main__":
    print("arguments:", sys.argv[1:], flush=True)
    print("helpers:", os.environ["PYTHONPATH"].split(os.pathsep)[1:], flush=True)
    forward()
