"""On the CPU a bad index is an honest Python exception."""
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(10, 4)

    def forward(self, tokens):
        return self.emb(tokens).sum()  # @fault


Net()(torch.tensor([3, 12]))
