"""Rank 2 fails while the others wait for it in a collective."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(4)
if dist.get_rank() == 2:
    torch.ones(3) + torch.ones(4)  # @fault
dist.all_reduce(x)
