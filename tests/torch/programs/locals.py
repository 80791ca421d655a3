"""The frames hold tensors of every sort, and things that must not be touched."""
import numpy
import torch


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print("asked for", function)
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes")

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        print("dispatched", function)
        raise NotImplementedError


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(10, 4)
        self.scale = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

    def forward(self, tok):
        turned, sparse = torch.zeros(3, 5).t(), torch.eye(3).to_sparse()
        loud, wrapper = torch.zeros(6).as_subclass(Loud), Wrapper(torch.zeros(7))
        half = numpy.zeros((8, 9), "f2")[:, ::3]
        dates = numpy.zeros(2, "M8[s]")
        z = self.emb(tok)  # @fault
        return z


net = Net()
net(torch.full((2, 3), 99))
