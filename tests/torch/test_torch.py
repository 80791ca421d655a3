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
    ("locals", "unrecognised", "exact", {"fatal": True}),
    ("backward", "unrecognised", "likely", {"phase": "backward", "fatal": True}),
]

# The tensors and objects of the deepest frame, those first that the line names.
LOCALS = [
    "tok int64 [2, 3] cpu (3, 1)",
    "turned float32 [5, 3] cpu (1, 5)",
    "sparse float32 [3, 3] cpu sparse_coo",
    "loud float32 [6] cpu (1,)",
    "half float16 [8, 3] cpu (9, 3)",
    "dates datetime64 [2] cpu (1,)",
    "self.emb.weight float32 [10, 4] cpu (4, 1) grad",
    "self.scale bfloat16 [4] cpu (1,) grad",
    "self __main__.Net module",
    "wrapper __main__.Wrapper object",
    "self.emb torch.nn.modules.sparse.Embedding module",
    "self.optimizer torch.optim.sgd.SGD optimizer",
]


def marker_line(path, marker="# @fault"):
    lines = open(path).read().splitlines()
    return next(number for number, line in enumerate(lines, 1) if marker in line)


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
        if name == "locals":
            told = told_of_deepest_frame(first)
            assert sorted(told) == sorted(line.replace("__main__.", "") for line in LOCALS), told
            assert told[0] == LOCALS[0], told
        for field, value in rest.items():
            assert first[field] == value, f"{field} is {first[field]}"


def check_anomaly():
    """The rerun that is offered for a failure in backward finds its forward line."""
    program = os.path.join(HERE, "programs", "backward.py")
    with tempfile.TemporaryDirectory() as folder:
        run([CUBLAME, "run", "--mode", "off", "--", sys.executable, program], folder)
        offered = [advice["command"] for advice in report_of(folder)["verdicts"][0]["advice"] if advice["id"] == "rerun-anomaly"]
    assert offered == [f"cublame run --anomaly -- {sys.executable} {program}"], offered
    with tempfile.TemporaryDirectory() as folder:
        run([CUBLAME, "run", "--mode", "off", "--anomaly", "--", sys.executable, program], folder)
        verdict = report_of(folder)["verdicts"][0]
    assert verdict["place"]["line"] == marker_line(program, "# @forward"), verdict["place"]
    assert verdict["certainty"] == "likely", verdict["certainty"]
    assert all(advice["id"] != "rerun-anomaly" for advice in verdict["advice"])


def told_of_deepest_frame(verdict):
    deepest = max(tensor["frame"] for tensor in verdict["tensors"])
    told = []
    for tensor in verdict["tensors"]:
        layout = tensor["layout"] or str(tuple(tensor["strides"]))
        words = [tensor["name"], tensor["dtype"], str(tensor["shape"]), tensor["device"], layout]
        told += [" ".join(words + ["grad"] * bool(tensor["requires_grad"]))] if tensor["frame"] == deepest else []
    for held in verdict["objects"]:
        told += [f"{held['name']} {held['class']} {held['kind']}"] if held["frame"] == deepest else []
    return told


def main():
    failed = 0
    checks = [(name, lambda name=name, expected=expected: check(name, *expected)) for name, *expected in EXPECTED]
    checks.append(("anomaly", check_anomaly))
    for name, run_check in checks:
        try:
            run_check()
            print("ok     ", name)
        except (AssertionError, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as error:
            failed += 1
            print("FAILED ", name, "-", error)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
