import torch
t = torch.randn(10, 8, device="cuda"); i = torch.tensor([3, 12], device="cuda")
def deep(n):
    return deep(n - 1) if n else t[i]                      # @fault
z = deep(150)
print((z + 1).sum().item())
