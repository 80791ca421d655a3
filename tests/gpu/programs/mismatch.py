import torch
m = torch.nn.Linear(4, 4).cuda()
x = torch.randn(2, 4)
y = m(x)                                   # @fault
