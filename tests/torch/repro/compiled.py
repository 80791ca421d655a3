import torch

table = torch.randn(100, 16)


@torch.compile(backend="eager")
def net(index):
    return (table[index] * 2).sin().sum(1)


good, bad = torch.tensor([1, 2, 3]), torch.tensor([1, 200, 3])
net(good)
print(net(bad).tolist())
