"""Runs a program under the interpreter in question, with the hook and without, and reads what was written."""

import json
import os
import re
import subprocess
import tempfile
import unittest

TARGET = os.environ["CUBLAME_TEST_PYTHON"]
HOOK = os.environ["CUBLAME_TEST_HOOK"]
# Every run folder of the suite stays in here, for the caller to read with the types of the product.
RUNS = os.environ["CUBLAME_TEST_RUNS"]

CLEAN = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("CUBLAME", "PYTHON", "PYTEST", "COV", "XDG_", "CUDA_")) and key not in ("RANK", "LOCAL_RANK")
}


class Outcome:
    def __init__(self, code, stdout, stderr, run):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.run = run

    def same(self):
        """What has to be equal. An address never is, nor is the count of references to an exception in CPython's last
        words of one that it cannot print."""
        stderr = re.sub(rb"0x[0-9a-f]+|(?<=object refcount : )[0-9]+", b"...", self.stderr)
        return {"exit code": self.code, "stdout": self.stdout, "stderr": stderr}

    def processes(self):
        """The events of each process, in the order of their first event."""
        folder = os.path.join(self.run, "events")
        names = [name for name in os.listdir(folder) if name.endswith(".jsonl")] if os.path.isdir(folder) else []
        files = []
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                files.append([json.loads(line) for line in file if line.strip()])
        return sorted(files, key=lambda events: events[0]["time"])

    def events(self, kind=None):
        every = [event for events in self.processes() for event in events]
        return sorted((e for e in every if kind in (None, e["event"])), key=lambda event: event["time"])

    def exception(self):
        """The only exception event."""
        (event,) = self.events("exception")
        return event

    def faults(self):
        folder = os.path.join(self.run, "events")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".fault")]


class Case(unittest.TestCase):
    maxDiff = None
    # Below this the hook is silent by design.
    oldest = (3, 8)

    def setUp(self):
        if VERSION < self.oldest:
            self.skipTest("the hook is silent before Python %d.%d" % self.oldest)
        scratch = tempfile.TemporaryDirectory(prefix="cublame-hook-")
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.realpath(scratch.name)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def python(self, *arguments, hook=True, env=None, python_path=(), stdin=b"", cwd=None, python=TARGET, run=None):
        """Runs the interpreter; `env` holds changes, None takes a variable away."""
        if run is None:
            run = tempfile.mkdtemp(dir=RUNS)
            os.mkdir(os.path.join(run, "events"))
        changed = dict(CLEAN)
        path = [HOOK, *python_path] if hook else list(python_path)
        if path:
            changed["PYTHONPATH"] = os.pathsep.join(path)
        if hook:
            changed["CUBLAME_RUN"] = run
        for key, value in (env or {}).items():
            changed.pop(key, None)
            if value is not None:
                changed[key] = value
        done = subprocess.run(
            [python, *arguments],
            env=changed,
            input=stdin,
            cwd=cwd or self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
        )
        return Outcome(done.returncode, done.stdout, done.stderr, run)

    def unchanged(self, *arguments, **options):
        """Runs with and without the hook, demands that nobody can tell, and returns the outcome with it."""
        without = self.python(*arguments, hook=False, **options)
        outcome = self.python(*arguments, **options)
        self.assertEqual(without.same(), outcome.same())
        return outcome


def marked(source, marker="# @fault"):
    return [number for number, line in enumerate(source.splitlines(), 1) if marker in line]


def version():
    text = subprocess.run(
        [TARGET, "-c", "import sys; print('%d %d' % sys.version_info[:2])"], env=CLEAN, stdout=subprocess.PIPE, check=True
    ).stdout
    return tuple(map(int, text.split()))


VERSION = version()


def since(*needed):
    return unittest.skipIf(VERSION < needed, "needs Python %d.%d" % needed)


def has(module, python=TARGET):
    done = subprocess.run([python, "-c", "import " + module], env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode == 0
