"""Two devices in one operation, on the meta device in place of a second one."""
import torch

weight = torch.ones(4, 4, device="meta")
x = torch.ones(4, 4)
y = torch.add(x, weight, out=x)  # @fault
