"""A gradient of the wrong shape: the engine finds it, long after the call that it belongs to."""
import torch


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:1]


def forward(x):
    y = Wrong.apply(x)  # @forward
    return y.sum()


weight = torch.ones(3, requires_grad=True)
loss = forward(weight * 1)
loss.backward()  # @fault
