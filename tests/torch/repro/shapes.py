import torch

a, b = torch.randn(6, 5), torch.randn(6, 5)
with torch.autocast("cpu", dtype=torch.bfloat16):
    print(a @ b)  # @fault
