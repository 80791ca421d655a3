"""The program tries the GPU, catches what happens and goes on without it."""
import torch

try:
    torch.zeros(1).cuda()  # @fault
except RuntimeError as error:
    print("no GPU, going on:", error)
print("done")
