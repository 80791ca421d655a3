# One launch between two synchronisations: nothing else can have failed.
import torch, extlib
x = torch.zeros(1 << 16, device="cuda")
torch.cuda.synchronize()
extlib.illegal(x)                                          # @fault
torch.cuda.synchronize()
