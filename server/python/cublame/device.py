"""Waiting for the device: through torch where it is there, else through CuPy or Numba, else through the driver itself.

Nothing here starts CUDA or loads its driver: what nobody has started has no work to wait for.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any


class DeviceError(RuntimeError):
    """A CUDA failure that was met while waiting, in a program of which no framework has an exception for it."""


def may_have_work() -> bool:
    """Is CUDA in use, and in a state in which it can be waited for?"""
    torch = started_torch()
    if torch is not None:
        return not is_capturing(torch)
    return driver_in_use() is not None


def wait() -> None:
    """Until everything that was launched on the current device is done. Raises what failed there."""
    torch = started_torch()
    if torch is not None:
        if not is_capturing(torch):
            torch.cuda.synchronize()
        return
    driver = driver_in_use()
    if driver is None:
        return
    code = driver.cuCtxSynchronize()
    if code:
        raise_as_the_framework_would()
        raise DeviceError(describe(driver, code))


def started_torch() -> Any:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not getattr(cuda, "is_initialized", bool)() or cuda._is_in_bad_fork():
        return None
    return torch


def is_capturing(torch: Any) -> bool:
    """A CUDA graph is being captured on the current stream: waiting would spoil it, and nothing runs."""
    ask = getattr(torch.cuda, "is_current_stream_capturing", None)
    return ask is not None and bool(ask())


# The driver without a framework.

LEGACY_STREAM = 1
CAPTURE_IS_IMPLICIT = 906


def driver_in_use() -> Any | None:
    """The driver's library if this thread has a context on a device, and no graph is being captured there."""
    driver = loaded_driver()
    if driver is None:
        return None
    context = ctypes.c_void_p()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) or not context.value:
        return None
    cupy = sys.modules.get("cupy")
    if cupy is not None and hasattr(cupy, "cuda") and cupy.cuda.get_current_stream().is_capturing():
        return None
    status = ctypes.c_int()
    code = driver.cuStreamIsCapturing(ctypes.c_void_p(LEGACY_STREAM), ctypes.byref(status))
    return None if code == CAPTURE_IS_IMPLICIT or status.value else driver


_driver: Any = None


def loaded_driver() -> Any | None:
    """The driver's library where the program has loaded it already."""
    global _driver
    if _driver is None:
        try:
            if os.name == "nt":
                _driver = ctypes.WinDLL("nvcuda.dll")  # type: ignore[attr-defined,unused-ignore]
            else:
                _driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except (OSError, AttributeError):
            return None
    return _driver


def raise_as_the_framework_would() -> None:
    """The failure stays with the context: whoever waits next gets it too, and has an exception of its own for it."""
    cupy, numba_cuda = sys.modules.get("cupy"), sys.modules.get("numba.cuda")
    if cupy is not None:
        cupy.cuda.runtime.deviceSynchronize()
    if numba_cuda is not None:
        numba_cuda.synchronize()


def describe(driver: Any, code: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    driver.cuGetErrorName(code, ctypes.byref(name))
    driver.cuGetErrorString(code, ctypes.byref(text))
    words = [(part.value or b"").decode("ascii", "replace") for part in (text, name)]
    return "CUDA error: {} ({}, {})".format(words[0] or "unknown", words[1] or "no name", code)
