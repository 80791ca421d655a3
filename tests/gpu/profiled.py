"""How many kernels torch.profiler counts in a fixed piece of work, and how many launches the journal has of it."""
import torch
from torch.profiler import ProfilerActivity, profile

x = torch.randn(256, 256, device="cuda")
for _ in range(3):
    (x @ x).relu().sum()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    for _ in range(50):
        (x @ x).relu().sum()
    torch.cuda.synchronize()
kernels = [event for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA]
print("kernels", len(kernels))
