import torch, triton, triton.language as tl
@triton.jit
def mm(a, b, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.arange(0, BM); rn = tl.arange(0, BN); rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, 4):
        x = tl.load(a + rm[:, None] * 512 + rk[None, :] + k*BK)
        y = tl.load(b + rk[:, None] * 512 + rn[None, :] + k*BK*512)
        acc += tl.dot(x, y)
    tl.store(c + rm[:, None] * 512 + rn[None, :], acc)
a = torch.randn(512, 4096, device="cuda", dtype=torch.float16)
b = torch.randn(4096, 512, device="cuda", dtype=torch.float16); c = torch.empty(512, 512, device="cuda")
mm[(1,)](a, b, c, BM=256, BN=256, BK=256, num_stages=4)    # @fault
print(c.sum().item())
