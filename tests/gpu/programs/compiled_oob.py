import torch
table = torch.randn(100, 16, device="cuda")
@torch.compile
def net(i):
    return (table[i] * 2).sin().sum(1)                     # @inner-fault
good = torch.tensor([1, 2, 3], device="cuda"); bad = torch.tensor([1, 200, 3], device="cuda")
net(good); torch.cuda.synchronize()
y = net(bad)                                               # @fault
print((y + 1).tolist())
