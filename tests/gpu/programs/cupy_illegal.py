import cupy as cp
k = cp.RawKernel(r'''extern "C" __global__ void k(float* x){ x[(size_t)1<<40] = threadIdx.x; }''', "k")
x = cp.zeros(1024, dtype=cp.float32)
k((4,), (256,), (x,))                                      # @fault
y = x + 1
print(float(y.sum()))
