"""What the hook adds to the start of an interpreter: medians of alternated runs, elapsed and of processor time.

    python tests/bench/hook_startup.py [--runs N] [PYTHON...]

The hook's files are copied to a fresh folder, and one run goes before the measured ones, so that what is compiled once is
compiled. `empty` runs nothing, `exception` dies of one: the difference is then also what an exception costs to describe.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HOOK = os.path.join(os.path.dirname(__file__), "..", "..", "server", "src", "hook")
PROGRAMS = {"empty": "pass", "exception": "def f(n):\n    return f(n - 1) if n else 1 / 0\nf(20)"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="runs of each kind (100)")
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    arguments = parser.parse_args()
    print("%-10s %-10s %-9s %9s %9s %9s %7s" % ("python", "program", "time", "bare", "hook", "added", "ratio"))
    for python in arguments.pythons:
        version = subprocess.run([python, "-V"], stdout=subprocess.PIPE, check=True).stdout.decode().split()[1]
        for name, program in PROGRAMS.items():
            for what, bare, hook in measure(python, program, arguments.runs):
                row = (version, name, what, bare, hook, hook - bare, hook / bare)
                print("%-10s %-10s %-9s %6.2f ms %6.2f ms %6.2f ms %7.3f" % row)


def measure(python, program, runs):
    """Medians in milliseconds, without and with the hook."""
    with tempfile.TemporaryDirectory() as scratch:
        script = os.path.join(scratch, "program.py")
        with open(script, "w") as file:
            file.write(program)
        hook = os.path.join(scratch, "hook")
        shutil.copytree(HOOK, hook, ignore=lambda _, names: [name for name in names if not name.endswith(".py")])
        run = os.path.join(scratch, "run")
        os.makedirs(os.path.join(run, "events"))
        bare = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CUBLAME"))}
        environments = [bare, dict(bare, PYTHONPATH=hook, CUBLAME_RUN=run)]
        samples = [[], []]
        for _ in range(runs + 1):
            for environment, kept in zip(environments, samples):
                kept.append(time_once([python, script], environment))
        medians = [[statistics.median(kind) for kind in zip(*kept[1:])] for kept in samples]
        return zip(("elapsed", "processor"), *medians)


def time_once(command, environment):
    """Elapsed and processor time of one run, in milliseconds."""
    before = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    usage = os.wait4(child.pid, 0)[2]
    elapsed = time.perf_counter() - before
    child.returncode = 0
    return elapsed * 1000, (usage.ru_utime + usage.ru_stime) * 1000


if __name__ == "__main__":
    main()
