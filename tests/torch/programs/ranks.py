# launch: torchrun --standalone --nproc-per-node=2
"""Rank 1 fails; rank 0 waits for it and is only its victim."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    torch.nn.Embedding(10, 4)(torch.tensor([99]))  # @fault
dist.all_reduce(torch.ones(1))
