# Every step is synchronised by .item(); the fault is in the fifth, followed by work that is innocent.
import torch, extlib
x = torch.zeros(1 << 16, device="cuda")
for step in range(20):
    y = (x * 2 + 1).sum()
    if step == 5:
        extlib.illegal(x)                                  # @fault
    z = y + 1
    z.item()
