#!/usr/bin/env python3
"""How fast `cublame explain` reads large logs, against ripgrep counting on the same file in the same run.

usage: explain.py CUBLAME [--small]

Prints, for each log, megabytes per second of both, their ratio, and the peak memory of `explain` (RSS, from wait4).
The runs alternate and each figure is the median of five. ripgrep counts the word that the log is about.
--small divides the sizes by ten, to see that the program runs.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
ASSERTION = (
    "../aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [{b},0,0], thread: [{t},0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n"
)
TRACE = (
    'Traceback (most recent call last):\n  File "/home/dev/proj/train.py", line 61, in main\n    loss = model(x)\n'
    "RuntimeError: CUDA error: device-side assert triggered\n"
)


def assert_flood(size):
    block = "".join(ASSERTION.format(b=b, t=t) for b in range(100) for t in range(128))
    yield from repeated(block, size)
    yield TRACE


def benign(size):
    lines = []
    for step in range(2000):
        bar = "#" * (step % 40)
        lines.append(f"\rEpoch 3:  {step % 100:3d}%|{bar:40s}| {step}/2000 [00:12<00:15, 92.1it/s, loss={step / 7:.4f}]")
        if step % 10 == 0:
            lines.append(f"\n2026-11-30 12:00:{step % 60:02d},123 INFO trainer: step {step} loss {step / 7:.6f} lr 3.0e-04\n")
    yield from repeated("".join(lines), size)
    yield TRACE


def one_line(size):
    yield from repeated("x" * 65536, size)
    yield "\n" + TRACE


def random_bytes(size):
    generator = random.Random(7)
    for _ in range(size >> 20):
        yield generator.randbytes(1 << 20)


def repeated(block, size):
    for _ in range(size // len(block)):
        yield block


def run(command, path):
    start = time.perf_counter()
    with open(path, "rb") as log:
        child = subprocess.Popen(command, stdin=log, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - start, usage.ru_maxrss / 1024, child.returncode


def main():
    cublame = sys.argv[1]
    divide = 10 if "--small" in sys.argv else 1
    cases = [
        ("200 MB assert flood", assert_flood, 200, "Assertion"),
        ("500 MB healthy log with progress bars", benign, 500, "Traceback"),
        ("one 100 MB line", one_line, 100, "Traceback"),
        ("20 MB random bytes", random_bytes, 20, "Traceback"),
    ]
    print(f"{'log':40} {'rg MB/s':>9} {'explain MB/s':>13} {'ratio':>6} {'peak MB':>8}")
    with tempfile.TemporaryDirectory(prefix="cublame-bench-") as folder:
        for name, pieces, megabytes, word in cases:
            path = os.path.join(folder, "log")
            with open(path, "wb") as log:
                for piece in pieces(megabytes * 10**6 // divide):
                    log.write(piece if isinstance(piece, bytes) else piece.encode())
            size = os.path.getsize(path) / 1e6
            ours, theirs, memory = [], [], 0
            for _ in range(ROUNDS):
                seconds, _, _ = run(["rg", "-c", "-a", word, "-"], path)
                theirs.append(size / seconds)
                seconds, peak, code = run([cublame, "explain", "--json", "-"], path)
                assert code == 0, f"explain left with {code} on {name}"
                ours.append(size / seconds)
                memory = max(memory, peak)
            rg, explain = statistics.median(theirs), statistics.median(ours)
            print(f"{name:40} {rg:9.0f} {explain:13.0f} {explain / rg:6.2f} {memory:8.1f}")
            os.remove(path)


if __name__ == "__main__":
    main()
