import torch
def select(h, pos):
    return h[torch.arange(h.size(0), device=h.device), pos]   # @fault
h = torch.randn(8, 16, 32, device="cuda")
pos = torch.full((8,), 16, device="cuda")
z = select(h, pos)
w = z @ torch.randn(32, 4, device="cuda")
torch.cuda.synchronize()
print(w.shape)
