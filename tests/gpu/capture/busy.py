"""Keeps a GPU busy for twelve seconds, then reads where nothing is."""
import time

import torch

if torch.cuda.is_available():
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    until = time.time() + 12
    while time.time() < until:
        for _ in range(20):
            x = (x @ x).clamp(-1, 1)
        torch.cuda.synchronize()
    try:
        import cupy

        cupy.RawKernel('extern "C" __global__ void f(int *p) { p[1ull << 40] = 1; }', "f")((1,), (1,), (cupy.zeros(1, "i4"),))
        torch.cuda.synchronize()
    except ImportError:
        pass
raise RuntimeError("CUDA error: ended on purpose")
