"""Rank 1 never comes to the collective that the others wait in."""
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
print("rank", dist.get_rank(), "is here", flush=True)
if dist.get_rank() == 1:
    while True:
        time.sleep(0.5)  # @fault
dist.all_reduce(torch.ones(4))
