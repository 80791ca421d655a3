"""A library that launches kernels of the stand-in driver. The tests put it among the installed packages."""

import _ctypes
import ctypes

driver = ctypes.CDLL("libcuda.so.1")
ADDRESS = ctypes.cast(driver.cuLaunch, ctypes.c_void_p).value


def launch_in_c(bad):
    """Call as `launch_in_c(bad)(...)`: the function in C and its arguments."""
    return _ctypes.call_function, ADDRESS, (bad,)


def launch(bad):
    helper(bad)


def helper(bad):
    driver.cuLaunch(bad)


class Kernel:
    def __getitem__(self, grid):
        return lambda bad: helper(bad)


class Array:
    def __init__(self, bad=0):
        self.bad = bad

    def __add__(self, other):
        helper(self.bad)
        return self

    def __getitem__(self, index):
        helper(self.bad)
        return self
