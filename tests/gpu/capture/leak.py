"""Keeps something of every step until a small share of the GPU is full."""
import time

import torch

share = 6 * 2**30 / torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(min(1.0, share))
model = torch.nn.Linear(2048, 2048).cuda()
kept = []
while True:
    x = torch.randn(4096, 2048, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    kept.append(torch.zeros(24 << 20, dtype=torch.uint8, device="cuda"))  # @holds
    time.sleep(0.05)
