"""One of each kind of call, under numbers that the test knows."""
import ctypes
import os
import sys
import threading

import driver
from driver import POINTER, STREAM, entry, launch, library, synchronize

launch(0x10)
entry("cuLaunchKernel", POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER, POINTER, flags=2)(
    0x11, 1, 1, 1, 64, 1, 1, 0, None, None, None
)
library.cuMemsetD8Async(ctypes.c_uint64(1), ctypes.c_ubyte(0), ctypes.c_size_t(8), POINTER(STREAM))
library.cuEventRecord(POINTER(0xE1), POINTER(STREAM))
library.cuStreamWaitEvent(POINTER(0x600), POINTER(0xE1), 0)
library.cuEventSynchronize(POINTER(0xE1))
synchronize(STREAM)
assert library.cuStreamQuery(POINTER(STREAM)) == 600
assert library.cuStreamQuery(POINTER(STREAM)) == 0
library.cuStreamBeginCapture_v2(POINTER(STREAM), 0)
launch(0x20, grid=7)
graph, executable = ctypes.c_uint64(), ctypes.c_uint64()
library.cuStreamEndCapture(POINTER(STREAM), ctypes.byref(graph))
library.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0))
library.cuGraphLaunch(executable, POINTER(STREAM))
library.cuStreamDestroy_v2(POINTER(STREAM))
launch(0x10)
child = os.fork()
if child == 0:
    launch(0x30)
    os._exit(0)
os.waitpid(child, 0)
thread = threading.Thread(target=launch, args=(0x40,))
thread.start()
thread.join()
print(synchronize(STREAM), launch(0x50))
print("to stderr", file=sys.stderr)
sys.exit(3)
