import torch
torch.cuda.set_per_process_memory_fraction(0.05)
def batch(n):
    return torch.empty(n, 1024, 1024, device="cuda")     # @fault
x = batch(4000)
print(x.shape)
