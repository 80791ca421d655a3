"""An operation spoils what backward needs; backward runs into it."""
import torch


def forward(x):
    y = x.exp()  # @forward
    y += 1
    return y.sum()


x = torch.ones(4, device="cuda", requires_grad=True)
loss = forward(x * 2)
loss.backward()  # @backward
