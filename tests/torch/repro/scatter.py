import torch

torch.manual_seed(0)
index = torch.randint(0, 50, (100,))
index[10] = 77
out = torch.zeros(50)
out.scatter_add_(0, index, torch.ones(100))  # @fault
