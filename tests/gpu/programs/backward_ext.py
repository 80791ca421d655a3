import torch, extlib
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0
    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        extlib.illegal(g)                                  # @fault
        return g
def block(x):
    h = torch.relu(x)
    return Bad.apply(h)                                    # @forward-fault
x = torch.randn(64, 64, device="cuda", requires_grad=True)
loss = block(x).sum()
loss.backward()
print(x.grad.sum().item())
