# Two threads launch the same kernel on one stream; only one gives it a bad index.
import threading, torch
t = torch.randn(10, 8, device="cuda"); ok = torch.tensor([3, 2], device="cuda"); bad = torch.tensor([3, 12], device="cuda")
torch.cuda.synchronize()
def good():
    for _ in range(200): t[ok]
def fault():
    for _ in range(100): t[ok]
    t[bad]                                                 # @fault
    for _ in range(100): t[ok]
threads = [threading.Thread(target=f) for f in (good, fault)]
for thread in threads: thread.start()
for thread in threads: thread.join()
torch.cuda.synchronize()
