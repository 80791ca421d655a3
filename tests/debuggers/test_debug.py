"""`cublame debug` with a real debugpy. usage: test_debug.py CUBLAME TORCH_PYTHON [NAME...]

The programs fail as test_dap.py says; tensors are those of torch from PyPI on the CPU, where tests/torch has installed it.
"""

import os
import pathlib
import pty
import select
import subprocess
import sys
import time

CUBLAME, TORCH_PYTHON = map(os.path.abspath, sys.argv[1:3])
NAMES = sys.argv[3:]
sys.argv[1:] = [CUBLAME]

import dap
from test_dap import PYTHON, RECORDED, TORCH, Project, main, report


def debug(project, *command, mode="blocking", **environment):
    """The finished process, without a terminal."""
    return subprocess.run([CUBLAME, "debug", "--mode", mode, "--", *command], cwd=project.root, env=environment_of(project, environment),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=dap.TIMEOUT, start_new_session=True)


def environment_of(project, more=()):
    return os.environ | project.environment | {"PYTHONPATH": str(TORCH), "RECORDED": str(RECORDED)} | dict(more)


def on_a_terminal(project, command, answer):
    """Exit code and everything that the terminal showed, when a person answers the question."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(project.root)
        os.execvpe(command[0], command, environment_of(project))
    shown, answered, deadline = b"", False, time.monotonic() + dap.TIMEOUT
    try:
        while True:
            assert time.monotonic() < deadline, shown.decode()
            if select.select([terminal], [], [], 0.5)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:
                    break
                if not piece:
                    break
                shown += piece
            if b"[q]uit?" in shown and not answered:
                os.write(terminal, answer)
                answered = True
        assert answered, shown.decode()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()
    finally:
        os.close(terminal)


def verdict_stack_and_the_programs_own_end(project):
    ran = debug(project, PYTHON, "train.py")
    assert (ran.returncode, ran.stdout) == (1, ""), ran
    assert "stands at its failure" in ran.stderr and "error[device-assert]" in ran.stderr, ran.stderr
    assert f"train.py:{project.fault()}, in forward" in ran.stderr and "[q]uit?" not in ran.stderr, ran.stderr
    # The verdict stands before the program's own traceback, and once.
    assert ran.stderr.index("error[device-assert]") < ran.stderr.index("Traceback (most recent call last)"), ran.stderr
    assert ran.stderr.count("error[device-assert]") == 1, ran.stderr
    [verdict] = report(project.run())["verdicts"]
    assert (verdict["place"]["line"], verdict["certainty"]) == (project.fault(), "exact"), verdict
    assert not list(project.run().glob("debugger-*")), list(project.run().iterdir())
    assert "debugpy" not in (project.run() / "run.json").read_text()


def a_program_that_does_well_is_left_alone(project):
    project.write("fine.py", "import sys\nprint('out', sys.argv[1:])\nprint('err', file=sys.stderr)\nbreakpoint()\nsys.exit(7)\n")
    ran = debug(project, PYTHON, "-u", "fine.py", "-a", "b c")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "out ['-a', 'b c']\n", "err\n"), ran
    project.write("killed.py", "import os\nos.kill(os.getpid(), 9)\n")
    assert debug(project, PYTHON, "killed.py").returncode == 128 + 9


def modules_code_and_scripts_are_debugged(project):
    for command in ((PYTHON, "-m", "train"), (PYTHON, "-c", "import runpy; runpy.run_path('train.py', run_name='__main__')")):
        ran = debug(project, *command)
        assert ran.returncode == 1 and "error[device-assert]" in ran.stderr, ran.stderr
    script = project.write("train", f"#!{PYTHON}\n" + (project.root / "train.py").read_text())
    script.chmod(0o755)
    ran = debug(project, "./train")
    assert ran.returncode == 1 and f"train:{project.fault() + 1}, in forward" in ran.stderr, ran.stderr


def a_child_process_is_held_too(project):
    project.write("parent.py", "import subprocess, sys\nprint('child:', subprocess.call([sys.executable, 'train.py']), flush=True)\n")
    ran = debug(project, PYTHON, "parent.py")
    assert (ran.returncode, ran.stdout) == (0, "child: 1\n"), ran
    assert ran.stderr.count("stands at its failure") == 1 and "error[device-assert]" in ran.stderr, ran.stderr


def another_exception_is_the_programs_own_affair(project):
    project.write("plain.py", "raise ValueError('nothing of a GPU')\n")
    ran = debug(project, PYTHON, "plain.py")
    assert ran.returncode == 1 and "stands at its failure" not in ran.stderr and "nothing of a GPU" in ran.stderr, ran.stderr


def what_cannot_be_debugged_is_said(project):
    for command, code, words in ((["/bin/true"], 125, "is no Python program"), ([PYTHON], 125, "no program to debug"),
                                 (["nobody-has-this"], 125, "there is no command")):
        ran = debug(project, *command)
        assert (ran.returncode, ran.stdout) == (code, "") and words in ran.stderr and "hint:" in ran.stderr, ran
    bare = project.home / "bare"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", bare], check=True)
    ran = debug(project, bare / "bin/python", "train.py", PATH=str(bare / "bin"))
    assert ran.returncode == 125 and "pip install debugpy" in ran.stderr, ran.stderr


def a_person_is_asked(project):
    command = [CUBLAME, "debug", "--mode", "blocking", "--", PYTHON, "train.py"]
    code, shown = on_a_terminal(project, command, b"x\nc\n")
    assert code == 1 and shown.count("[q]uit?") == 2 and "Traceback (most recent call last)" in shown, (code, shown)
    code, shown = on_a_terminal(project, command, b"q\n")
    assert code == 128 + 15 and "Traceback (most recent call last)" not in shown, (code, shown)
    verdicts = report(project.runs()[-1])["verdicts"]
    assert verdicts and verdicts[0]["place"]["line"] == project.fault(), verdicts


def tensors_are_named_by_their_metadata(project):
    project.write("tensors.py", """import torch
class Refuses(torch.Tensor):
    def __repr__(self):
        raise SystemExit("a value was asked for")
def step(tokens):
    weights = torch.nn.Parameter(torch.zeros(4, 8))
    other = torch.zeros(3).as_subclass(Refuses)
    text = "it's a \\"name\\""
    raise RuntimeError("CUDA error: device-side assert triggered")
step(torch.zeros(2, 3, dtype=torch.int64))
""")
    ran = debug(project, TORCH_PYTHON, "tensors.py", PYTHONPATH="")
    assert "tokens is torch.int64 [2, 3] on cpu" in ran.stderr and "weights is torch.float32 [4, 8] on cpu" in ran.stderr, ran.stderr
    assert "other is" not in ran.stderr and "a value was asked for" not in ran.stderr, ran.stderr


TESTS = [verdict_stack_and_the_programs_own_end, a_program_that_does_well_is_left_alone, modules_code_and_scripts_are_debugged,
         a_child_process_is_held_too, another_exception_is_the_programs_own_affair, what_cannot_be_debugged_is_said, a_person_is_asked]
if os.path.exists(TORCH_PYTHON):
    # Its debugpy is the one on PATH.
    os.environ["PATH"] = f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}"
    TESTS.append(tensors_are_named_by_their_metadata)
else:
    print("skipped: tensors of a held program (tests/torch has not installed torch)")

if __name__ == "__main__":
    main(TESTS, NAMES)
