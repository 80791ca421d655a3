#!/usr/bin/env python3
"""Does the time that `cublame explain` takes grow with its log and no faster?

usage: linear.py CUBLAME [--sizes MB,MB,...] [--check]

Prints, for each kind of log, megabytes per second of processor time at each size (1, 10 and 100 MB), and how the last
compares with the first: 1 is linear, less means that a megabyte of the large log costs more than one of the small.
Processor time (user and system, from wait4) is what other load on the machine changes least; the time to start and to
compile the patterns, taken from a log of one failure, is subtracted. Each figure is the best of three. With --check it fails
where a megabyte of the largest log costs more than three times one of the smallest.
"""
import os
import random
import subprocess
import sys
import tempfile

ROUNDS = 3
MOST = 3.0


def distinct_asserts(_):
    number = 0
    while True:
        yield (
            f"/pytorch/aten/src/ATen/native/cuda/K{number % 40}.cu:{number % 900}: kernel_{number}: block: "
            f"[{number % 97},0,0], thread: [{number % 128},0,0] Assertion `index_{number} < size` failed.\n"
        )
        number += 1


def endless_traceback(_):
    yield "Traceback (most recent call last):\n"
    number = 0
    while True:
        number += 1
        yield f'  File "/home/dev/proj/train.py", line {number % 900 + 1}, in step_{number % 7}\n    loss = model(x)\n'


def many_tracebacks(_):
    number = 0
    while True:
        number += 1
        yield (
            f'Traceback (most recent call last):\n  File "/home/dev/proj/train.py", line {number % 900 + 1}, in main\n'
            f"    loss = model(x)\nRuntimeError: number {number}\n"
        )


def chains(connector):
    def pieces(_):
        number = 0
        while True:
            number += 1
            yield (
                f'Traceback (most recent call last):\n  File "/home/dev/proj/train.py", line {number % 900 + 1}, in main\n'
                f"    loss = model(x)\nKeyError: {number}\n{connector}"
            )

    return pieces


def errors(_):
    number = 0
    while True:
        number += 1
        yield f"ValueError: number {number}\n"


def random_bytes(generator):
    while True:
        yield generator.randbytes(1 << 16)


def random_letters(generator):
    while True:
        yield generator.randbytes(1 << 15).decode("utf-16-le", "replace")


def long_lines(_):
    number = 0
    while True:
        number += 1
        yield f"RuntimeError: CUDA error {number}: " + "words and more words " * 1000 + "\n"


def one_line(_):
    while True:
        yield "RuntimeError: " * 1000


def brackets(_):
    while True:
        yield "RuntimeError: x\nOriginal Traceback (most recent call last):\n" + "([{" * 100 + "\n"


def ranks(_):
    number = 0
    while True:
        number += 1
        rank = number % 64
        yield (
            f"[rank{rank}]: Traceback (most recent call last):\n"
            f'[rank{rank}]:   File "/home/dev/proj/train.py", line {number % 900 + 1}, in main\n'
            f"[rank{rank}]:     loss = model(x)\n[rank{rank}]: RuntimeError: NCCL error number {number}\n"
        )


ONE_FAILURE = (
    "/pytorch/a.cu:16: gather: block: [0,0,0], thread: [0,0,0] Assertion `index < size` failed.\n"
    'Traceback (most recent call last):\n  File "/home/dev/proj/train.py", line 3, in main\n    loss = model(x)\n'
    "RuntimeError: CUDA error: device-side assert triggered\n"
)

LOGS = {
    "assertions, all distinct": distinct_asserts,
    "one endless traceback": endless_traceback,
    "many tracebacks": many_tracebacks,
    "exceptions during exceptions": chains(
        "\nDuring handling of the above exception, another exception occurred:\n\n"
    ),
    "tracebacks carried in tracebacks": chains("Original Traceback (most recent call last):\n"),
    "nothing but errors": errors,
    "64 ranks": ranks,
    "random bytes": random_bytes,
    "random letters of all scripts": random_letters,
    "long lines": long_lines,
    "one line": one_line,
    "brackets": brackets,
}


def main():
    cublame = os.path.abspath(sys.argv[1])
    sizes = [1, 10, 100]
    if "--sizes" in sys.argv:
        sizes = [float(size) for size in sys.argv[sys.argv.index("--sizes") + 1].split(",")]
    print(f"{'MB/s of processor time':36}" + "".join(f"{size:>7g} MB" for size in sizes) + f"{'ratio':>8}")
    slow = []
    with tempfile.TemporaryDirectory(prefix="cublame-bench-") as folder:
        path = os.path.join(folder, "log")
        write(path, iter([ONE_FAILURE]), 1)
        start = best(cublame, path)
        for name, pieces in LOGS.items():
            speeds = []
            for size in sizes:
                write(path, pieces(random.Random(7)), int(size * 1e6))
                seconds = max(best(cublame, path) - start, 0.001)
                speeds.append(os.path.getsize(path) / 1e6 / seconds)
            ratio = speeds[-1] / speeds[0]
            print(f"{name:36}" + "".join(f"{speed:10.1f}" for speed in speeds) + f"{ratio:8.2f}", flush=True)
            if ratio < 1 / MOST:
                slow.append(name)
    print(f"a log of one failure takes {start:.3f} s")
    if "--check" in sys.argv and slow:
        sys.exit(f"not linear: {', '.join(slow)}")


def write(path, pieces, size):
    with open(path, "wb") as log:
        while log.tell() < size:
            piece = next(pieces)
            log.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace"))


def best(cublame, path):
    return min(seconds(cublame, path) for _ in range(ROUNDS))


def seconds(cublame, path):
    with open(path, "rb") as log:
        child = subprocess.Popen(
            [cublame, "explain", "--json", "-"], stdin=log, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"explain left with {child.returncode}"
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
