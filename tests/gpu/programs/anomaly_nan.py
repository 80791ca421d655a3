import torch
torch.autograd.set_detect_anomaly(True)
x = torch.tensor([0.0, 1.0], device="cuda", requires_grad=True)
def f(t):
    u = torch.sqrt(t)                                      # @forward-fault
    return (u * 0).sum()
f(x).backward()
