import torch
src = torch.ones(100, device="cuda")
idx = torch.randint(0, 50, (100,), device="cuda"); idx[10] = 77
out = torch.zeros(50, device="cuda")
out.scatter_add_(0, idx, src)              # @fault
y = out / out.sum()
print(y.tolist()[:3])
