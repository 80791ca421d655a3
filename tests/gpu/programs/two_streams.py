import torch
x = torch.randn(4096, 4096, device="cuda"); t = torch.randn(10, 8, device="cuda"); i = torch.tensor([3, 12], device="cuda")
a, b = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(a):
    for _ in range(20): y = x @ x
with torch.cuda.stream(b):
    z = t[i]                                               # @fault
with torch.cuda.stream(a):
    for _ in range(20): y = x @ x
torch.cuda.synchronize()
