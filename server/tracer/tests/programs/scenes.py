"""Launches from many kinds of frames. Before each it prints its number and the stack that the interpreter itself gives,
innermost first: `1 FILE:LINE FUNCTION|FILE:LINE FUNCTION|...`."""
import asyncio
import contextlib
import ctypes
import sys
import threading

import driver

sys.setrecursionlimit(5000)
number = 0
lock = threading.Lock()


def stack(frame):
    parts = []
    while frame:
        code = frame.f_code
        parts.append(f"{code.co_filename}:{frame.f_lineno} {getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return parts


def launch():
    global number
    with lock:
        number += 1
        # fmt: off
        print(number, "|".join(stack(sys._getframe()))); driver.launch(0x1000 + number)
        # fmt: on


def deep(depth):
    return deep(depth - 1) if depth else launch()


def generator():
    for _ in range(2):
        launch()
        yield
        launch()


class Layer:
    def __call__(self):
        return (lambda: launch())()

    @property
    def value(self):
        launch()

    @staticmethod
    def fixed():
        launch()


async def inner():
    await asyncio.sleep(0)
    launch()


async def outer():
    await asyncio.gather(inner(), inner())


@contextlib.contextmanager
def managed():
    launch()
    yield
    launch()


launch()
for depth in (1, 7, 300, 3, 300, 450):
    deep(depth)
list(generator())
layer = Layer()
layer(), layer.value, Layer.fixed()
[launch() for _ in range(2)]
sorted([2, 1], key=lambda _: launch() or 0)
asyncio.run(outer())
with managed():
    launch()
try:
    raise ValueError
except ValueError:
    launch()
finally:
    launch()
for thread in [threading.Thread(target=deep, args=(n,)) for n in (2, 5)]:
    thread.start()
    thread.join()
# Code objects that come and go at the same addresses.
for turn in range(60):
    exec(compile("\n" * (turn % 7) + "launch()" + "\n" * (turn % 3), f"<made {turn % 5}>", "exec"), {"launch": launch})
exec(compile("def grüße():\n    launch()\ngrüße()", "größe-漢字.py", "exec"), {"launch": launch})
callback = ctypes.CFUNCTYPE(None)(lambda: deep(2))
callback()
sys.settrace(lambda frame, event, argument: None)
deep(2)
sys.settrace(None)
sys.setprofile(lambda frame, event, argument: None)
deep(2)
sys.setprofile(None)
