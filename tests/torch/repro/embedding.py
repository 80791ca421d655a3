import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.head = nn.Linear(64, 8)

    def forward(self, tokens):
        x = self.embedding(tokens)  # @fault
        return self.head(x).mean(dim=1)


torch.manual_seed(3)
net = Net()
for step in range(5):
    tokens = torch.randint(0, 1000, (32, 128))
    if step == 3:
        tokens[3, 7] = 1003
    net(tokens).pow(2).sum().backward()
