import torch, triton, triton.language as tl
@triton.jit
def copy(src, dst, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(dst + i * stride, tl.load(src + i))
x = torch.randn(1 << 20, device="cuda"); y = torch.empty_like(x)
copy[(1024,)](x, y, x.numel(), 1 << 20, B=1024)           # @fault
z = x + 1
print(z.sum().item())
