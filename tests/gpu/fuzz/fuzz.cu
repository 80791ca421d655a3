// Three kernels of the same body. bad = 1 writes far outside of any allocation, bad = 2 fails an assertion.
#include <assert.h>
#define KERNEL(name)                                                \
    extern "C" __global__ void name(int *p, int bad, long long spin) { \
        long long start = clock64();                                \
        while (clock64() - start < spin) {}                         \
        assert(bad != 2);                                           \
        p[bad == 1 ? (1ll << 40) : 0] = 1;                          \
    }
KERNEL(fuzz_first)
KERNEL(fuzz_second)
KERNEL(fuzz_third)
