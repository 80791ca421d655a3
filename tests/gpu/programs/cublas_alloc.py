import torch
torch.cuda.init()
keep = []
a = torch.randn(256, 256, device="cuda")
free, total = torch.cuda.mem_get_info()
import ctypes
rt = torch.cuda.cudart()
hog = torch.empty(max(free - 40*2**20, 1), dtype=torch.uint8, device="cuda")
b = a @ a                                                  # @fault
print(b.sum().item())
