import torch, extlib
x = torch.zeros(1 << 16, device="cuda"); flag = torch.zeros(64, dtype=torch.long, device="cuda"); table = torch.randn(100, 8, device="cuda")
def net():
    a = table.relu()
    b = a[flag]                                            # @fault
    c = a[flag.clamp(0, 99)]
    return (b * 2 + c).sum()
s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3): net()
torch.cuda.current_stream().wait_stream(s)
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first): out = net()
with torch.cuda.graph(second): other = (table * 3).sum()
for _ in range(3): first.replay(); second.replay()
flag[5] = 100
first.replay(); second.replay(); first.replay()
print(out.item())
