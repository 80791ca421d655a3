import torch, extlib
def run_kernel(t):
    extlib.badconfig(t)                                           # @fault
x = torch.zeros(1 << 16, device="cuda")
run_kernel(x)
y = x * 2
z = (y + 1).sum()
print(z.item())
