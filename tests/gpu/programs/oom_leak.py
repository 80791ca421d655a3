import torch
torch.cuda.set_per_process_memory_fraction(0.02)
history = []
m = torch.nn.Linear(4096, 4096).cuda()
for step in range(10000):
    out = m(torch.randn(4096, 4096, device="cuda"))       # @fault
    history.append(out.mean(dim=0, keepdim=True) + out)   # @fault
