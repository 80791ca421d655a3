# Nothing fails: the tracer may not change anything.
import torch
x = torch.randn(256, 256, device="cuda")
for _ in range(20): x = torch.tanh(x @ x * 0.01)
print(tuple(x.shape), bool(torch.isfinite(x).all()))
