"""Work of one stream from several lines, and of a context after that one."""
import ctypes
import os

from driver import POINTER, STREAM, launch, library, synchronize

for _ in range(3):
    launch(0x10)
launch(0x20)
launch(0x30, stream=0x600)
launch(0x40, stream=STREAM)
library.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(1), POINTER(1), ctypes.c_size_t(8), POINTER(STREAM))
synchronize(STREAM)
if os.environ.get("RESET"):
    library.cuDevicePrimaryCtxReset_v2(0)
launch(0x50)
