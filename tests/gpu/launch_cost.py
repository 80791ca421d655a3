"""Microseconds a launch where the CPU is the limit, at two Python depths."""
import statistics
import time

import torch

x = torch.zeros(1024, device="cuda")


def at_depth(depth, work):
    return at_depth(depth - 1, work) if depth else work()


def loop():
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(2000):
        x.add_(1)
    issued = time.perf_counter() - start
    torch.cuda.synchronize()
    return issued / 2000 * 1e6


import sys

sys.setrecursionlimit(5000)
for depth in (0, 120, 400):
    at_depth(depth, loop)
    times = [at_depth(depth, loop) for _ in range(15)]
    print(f"depth {depth}: {statistics.median(times):.3f} us a launch (least {min(times):.3f})")
