import threading, torch
x = torch.zeros(1024, device="cuda"); torch.cuda.synchronize()
t = torch.randn(10, 8, device="cuda"); i = torch.tensor([3, 12], device="cuda")
def busy(n):
    y = torch.zeros(256, device="cuda")
    for _ in range(n): y.add_(1)
def bad():
    busy(500)
    z = t[i]                                               # @fault
    busy(500)
ts = [threading.Thread(target=busy, args=(3000,)) for _ in range(3)] + [threading.Thread(target=bad)]
[k.start() for k in ts]; [k.join() for k in ts]
torch.cuda.synchronize()
