import torch
table = torch.randn(100, 16, device="cuda"); idx = torch.zeros(64, dtype=torch.long, device="cuda")
def net():
    a = table.relu()
    b = a[idx]                                             # @fault
    return (b * 2).sum()
s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3): net()
torch.cuda.current_stream().wait_stream(s)
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    out = net()
g.replay(); print(out.item())
idx[5] = 100
g.replay()
print(out.item())
