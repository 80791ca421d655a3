"""Prints what it and a worker of each kind see of the mode's variables. With torch, the worker of a DataLoader too."""

import multiprocessing
import os
import sys

NAMES = ("CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE")


def seen(who):
    # One write: lines of two processes do not mix.
    os.write(1, "".join(f"{who}: {name}={os.environ.get(name)}\n" for name in NAMES).encode())


def main():
    print("arguments:", sys.argv[1:], flush=True)
    seen("main")
    for method in ("spawn", "fork"):
        process = multiprocessing.get_context(method).Process(target=seen, args=(method,))
        process.start()
        process.join()
        assert process.exitcode == 0, (method, process.exitcode)
    try:
        import torch.utils.data
    except ImportError:
        return
    for _ in torch.utils.data.DataLoader(range(2), num_workers=1, worker_init_fn=lambda _: seen("loader")):
        pass


def test_main():
    main()


if __name__ == "__main__":
    main()
