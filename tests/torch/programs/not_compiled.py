"""What a CPU-only wheel does: torch's own check, with the symbol that such a wheel lacks taken away."""
import torch

del torch._C._cuda_getDeviceCount
model = torch.nn.Linear(4, 4)
model.to("cuda")  # @fault
