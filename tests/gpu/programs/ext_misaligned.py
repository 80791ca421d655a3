import torch, extlib
def run_kernel(t):
    extlib.misaligned(t)                                   # @fault
x = torch.zeros(1 << 16, device="cuda")
run_kernel(x)
y = x * 2
print((y + 1).sum().item())
