"""Real failures of torch on a machine without a GPU: run by `cublame run`, blamed, and left as they are.

usage: test_torch.py CUBLAME   (with the interpreter of a venv that has torch)
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CUBLAME = os.path.abspath(sys.argv[1])

# program, kind, certainty, what else the first verdict must say
EXPECTED = [
    ("no_driver", "no-driver", "exact", {"trace_trusted": True, "fatal": True}),
    ("not_compiled", "not-compiled-cuda", "exact", {"trace_trusted": True, "fatal": True}),
    ("bad_index", "unrecognised", "exact", {"fatal": True}),
    ("same_device", "same-device", "exact", {"fatal": True}),
    ("worker", "no-driver", "exact", {"fatal": True}),
    ("ranks", "unrecognised", "exact", {"rank": 1, "fatal": True}),
    ("thread", "no-driver", "exact", {"fatal": False}),
    ("caught", "no-driver", None, {"fatal": False}),
]


def marker_line(path):
    lines = open(path).read().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# @fault" in line)


def run(command, folder):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUBLAME", "CUDA_"))}
    env.update(CUBLAME_DIR=os.path.join(folder, "runs-of-test"), XDG_STATE_HOME=os.path.join(folder, "state"))
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def report_of(folder):
    found = [os.path.join(where, "report.json") for where, _, names in os.walk(folder) if "report.json" in names]
    assert len(found) == 1, f"one report was expected, found {found}"
    return json.load(open(found[0]))


def check(name, kind, certainty, rest):
    program = os.path.join(HERE, "programs", name + ".py")
    launch = re.search(r"^# launch: torchrun (.+)$", open(program).read(), re.M)
    torchrun = [sys.executable, "-m", "torch.distributed.run", *launch[1].split()] if launch else [sys.executable]
    command = [*torchrun, program]
    with tempfile.TemporaryDirectory() as folder:
        bare = run(command, folder)
        ours = run([CUBLAME, "run", "--mode", "blocking", "--", *command], folder)
        assert ours.returncode == bare.returncode, f"exit code {ours.returncode}, bare {bare.returncode}"
        assert ours.stdout == bare.stdout, "standard output differs"
        if not launch:
            assert ours.stderr.startswith(bare.stderr), "standard error does not start with the program's own"
        verdicts = report_of(folder)["verdicts"]
        assert verdicts, f"no verdict; standard error: {ours.stderr.decode()[-2000:]}"
        first = verdicts[0]
        assert first["kind"] == kind, f"kind {first['kind']}"
        if certainty:
            place = first["place"] or {}
            assert (os.path.basename(place.get("file") or ""), place.get("line")) == (name + ".py", marker_line(program)), place
            assert place["path"] == program, place
            assert first["certainty"] == certainty, first["certainty"]
            shown = ours.stderr[len(bare.stderr):] if not launch else ours.stderr
            if first["fatal"]:
                assert f"{name}.py:{marker_line(program)}".encode() in shown, shown.decode()
        for field, value in rest.items():
            assert first[field] == value, f"{field} is {first[field]}"


def main():
    failed = 0
    for name, *expected in EXPECTED:
        try:
            check(name, *expected)
            print("ok     ", name)
        except (AssertionError, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
            failed += 1
            print("FAILED ", name, "-", error)
    print(f"{len(EXPECTED) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
