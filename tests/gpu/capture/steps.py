"""Milliseconds a step and the most memory, eager and compiled."""
import json
import time

import torch
import torch.nn as nn

told = {}
for name in ("eager", "compiled"):
    torch.manual_seed(0)
    layer = lambda: nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = nn.Sequential(*[layer() for _ in range(6)]).cuda()
    step_of = torch.compile(model) if name == "compiled" else model
    x = torch.randn(16, 512, 512, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    try:
        times = []
        for step in range(25):
            torch.cuda.synchronize()
            start = time.perf_counter()
            step_of(x).square().mean().backward()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        told[name + "_ms"] = round(sorted(times)[len(times) // 2] * 1000, 2)
        told[name + "_peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    except Exception as error:
        told[name] = type(error).__name__ + ": " + str(error)[:80]
print(json.dumps(told))
