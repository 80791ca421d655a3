import torch

rows = torch.arange(21)
columns = torch.arange(20) % 5
columns[7] = 50
print(torch.sparse_csr_tensor(rows, columns, torch.ones(20), size=(20, 20), check_invariants=True))  # @fault
