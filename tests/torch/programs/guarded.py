import sys
import torch
import torch.nn as nn

# There is no GPU here: the guard watches the CPU's kernels instead.
guarding = sys.modules["cublame.guarding"]
guarding.uninstall()
guarding.install(keys=("CPU",))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, tokens):
        rows = self.table(tokens)  # @fault
        return self.head(rows).mean()


tokens = torch.zeros(32, 128, dtype=torch.long)
tokens[3, 7] = 1003
loss = Net()(tokens)
print("loss", loss.item())  # @told
