import torch

sizes = {"a": torch.ones(2)}
print(sizes["b"])  # @fault
