"""What goes wrong around the hook stays around the hook."""

import os
import resource
import shutil
import subprocess

from harness import CLEAN, HOOK, TARGET, Case, Outcome

FAULT = "1 / 0\n"


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.program = self.write("program.py", "print('x')\n" + FAULT)

    def check(self, run, **options):
        return self.unchanged("program.py", run=run, **options)

    def test_a_run_folder_that_is_not_there_is_not_made(self):
        run = os.path.join(self.folder, "gone")
        self.check(run)
        self.assertFalse(os.path.exists(run))

    def test_a_run_folder_that_is_a_file(self):
        self.check(self.write("file", ""))

    def test_a_run_folder_that_is_a_device(self):
        self.check("/dev/null")

    def test_a_name_that_no_system_takes(self):
        self.check("x" * 10000)

    def test_a_run_folder_that_goes_away(self):
        run = os.path.join(self.folder, "run")
        self.write("program.py", "import shutil, sys\nshutil.rmtree(%r, True)\n" % run + FAULT)
        for hook in (False, True):
            os.makedirs(os.path.join(run, "events"), exist_ok=True)
            outcome = self.python("program.py", run=run, hook=hook)
            self.assertEqual((outcome.code, b"ZeroDivisionError" in outcome.stderr, outcome.stdout), (1, True, b""))
            self.assertEqual(outcome.stderr.count(b"Traceback"), 1)
        self.assertFalse(os.path.exists(run))

    def test_a_relative_run_folder(self):
        os.makedirs(os.path.join(self.folder, "run", "events"))
        self.write("program.py", "import os\nos.chdir('/')\n" + FAULT)
        self.check("run")
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "run", "events"))), 1)

    def test_a_link_in_place_of_an_event_file_is_not_followed(self):
        """Nobody can guess the name beforehand; once it is known it could be replaced."""
        run = os.path.join(self.folder, "run")
        os.makedirs(os.path.join(run, "events"))
        victim = self.write("victim", "mine")
        program = """
import os
events = %r
(name,) = [name for name in os.listdir(events) if name.endswith('.jsonl')] or [None]
os.unlink(os.path.join(events, name)); os.symlink(%r, os.path.join(events, name))
1 / 0
"""
        self.write("program.py", program % (os.path.join(run, "events"), victim))
        outcome = self.python("program.py", run=run)
        self.assertEqual(outcome.code, 1)
        with open(victim) as file:
            self.assertEqual(file.read(), "mine")

    def test_hook_files_that_go_away(self):
        hook = os.path.join(self.folder, "hook")
        shutil.copytree(HOOK, hook, ignore=shutil.ignore_patterns("__pycache__"))
        self.write("program.py", "import shutil\nshutil.rmtree(%r, True)\n" % hook + FAULT)
        without = self.python("program.py", hook=False)
        outcome = self.python("program.py", env={"PYTHONPATH": hook})
        self.assertEqual(without.same(), outcome.same())

    def test_damaged_compiled_files_are_passed_over(self):
        hook = os.path.join(self.folder, "hook")
        shutil.copytree(HOOK, hook, ignore=shutil.ignore_patterns("__pycache__"))
        env = {"PYTHONPATH": hook}
        self.python("program.py", env=env)
        kept = [os.path.join(hook, "__pycache__", name) for name in os.listdir(os.path.join(hook, "__pycache__"))]
        kept = [path for path in kept if path.endswith(".code")]
        self.assertEqual(len(kept), 2)
        for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"\0" + data):
            for path in kept:
                with open(path, "rb") as file:
                    data = file.read()
                with open(path, "wb") as file:
                    file.write(damage(data))
            outcome = self.python("program.py", env=env)
            self.assertEqual(len(outcome.events("exception")), 1)


class Limits(Case):
    """A full disk is played by a limit on the size of files: the write fails in the same place."""

    def run_limited(self, hook, limits, program):
        self.write("program.py", program)
        run = os.path.join(self.folder, "run")
        os.makedirs(os.path.join(run, "events"), exist_ok=True)
        env = dict(CLEAN, PYTHONPATH=HOOK, CUBLAME_RUN=run) if hook else CLEAN

        def limit():
            for what, most in limits:
                resource.setrlimit(what, (most, most))

        done = subprocess.run(
            [TARGET, "-B", "program.py"],
            env=env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=limit,
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout, done.stderr, run).same()

    def check(self, *limits, program="print('x')\n" + FAULT):
        self.assertEqual(self.run_limited(False, limits, program), self.run_limited(True, limits, program))

    def test_a_full_disk(self):
        for size in (0, 10, 400, 1000):
            self.check((resource.RLIMIT_FSIZE, size))

    def test_a_line_that_did_not_fit_ends_there(self):
        self.run_limited(True, [(resource.RLIMIT_FSIZE, 500)], FAULT)
        events = os.path.join(self.folder, "run", "events")
        (name,) = [name for name in os.listdir(events) if name.endswith(".jsonl")]
        with open(os.path.join(events, name), "rb") as file:
            data = file.read()
        self.assertTrue(data.startswith(b'{"v":1,'))
        self.assertLessEqual(len(data), 500)

    def test_no_descriptor_left(self):
        program = "import os\nfiles = []\ntry:\n    while True: files.append(os.dup(2))\nexcept OSError: pass\n" + FAULT
        self.check((resource.RLIMIT_NOFILE, 64), program="print('x')\n" + FAULT)
        # The descriptor that is kept for crashes leaves the program one less: it stands beyond where they are counted.
        self.run_limited(True, [(resource.RLIMIT_NOFILE, 64)], program)

    def test_little_memory(self):
        program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
hold = []
while True: hold.append(bytearray(1 << 20))
"""
        self.check(program=program)

    def test_a_deep_stack(self):
        program = """
import sys
sys.setrecursionlimit(150)
class L:
    def __del__(self): raise ValueError("deep")
def f(n):
    if n: return f(n - 1)
    L()
for n in range(100, 148): 
    try: f(n)
    except RecursionError: pass
f(200)
"""
        without, told = self.run_limited(False, [], program), self.run_limited(True, [], program)
        last = [same.pop("stderr").splitlines()[-1] for same in (without, told)]
        self.assertEqual((without, last[0]), (told, last[1]))


class Interrupts(Case):
    def test_an_exception_told_from_within_the_telling(self):
        program = """
class Inner:
    def __del__(self): raise ValueError("inner")
class E(Exception):
    def __str__(self):
        Inner()
        return "outer"
raise E
"""
        self.write("program.py", program)
        outcome = self.python("program.py")
        self.assertEqual(outcome.code, 1)
        # The second time the interpreter itself asks for the text.
        self.assertEqual([event["chain"][-1]["message"] for event in outcome.events("exception")], ["outer", "inner"])

    def test_control_c_while_telling_is_not_lost(self):
        program = """
import os, signal
class E(Exception):
    first = True
    def __str__(self):
        if E.first:
            E.first = False
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100000): pass
        return "told"
try:
    import sys
    try:
        raise E
    except E:
        sys.excepthook(*sys.exc_info())
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""
        self.write("program.py", program)
        outcome = self.python("program.py")
        self.assertEqual(outcome.stdout, b"interrupted\n")
        self.assertIn(b"E: told", outcome.stderr)


class Storms(Case):
    def test_many_short_lived_children_leave_no_file_behind(self):
        self.write(
            "program.py",
            "import os\nfor _ in range(200):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\nprint('done')\n",
        )
        outcome = self.unchanged("program.py")
        self.assertEqual(len(os.listdir(os.path.join(outcome.run, "events"))), 1)

    def test_many_processes_that_fail_at_once(self):
        self.write(
            "program.py",
            """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", "1 / 0"], stderr=subprocess.DEVNULL) for _ in range(16)]
print([child.wait() for child in children])
""",
        )
        outcome = self.unchanged("program.py")
        self.assertEqual(len(outcome.events("exception")), 16)
        self.assertEqual(len(outcome.processes()), 17)

    def test_destructors_and_threads_and_forks_together(self):
        self.write(
            "program.py",
            """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
# Printing holds a lock of its own, which a fork may leave held: this program would hang at times without the hook.
sys.stderr = None
class L:
    def __init__(self, n): self.n = n
    def __del__(self): raise ValueError(self.n)
def work():
    for n in range(50):
        L(n)
        if n % 10 == 0:
            pid = os.fork()
            if pid == 0:
                L("child")
                os._exit(0)
            os.waitpid(pid, 0)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
""",
        )
        outcome = self.unchanged("program.py")
        self.assertEqual(outcome.stdout, b"done\n")
        children = [events for events in outcome.processes()[1:]]
        self.assertEqual(len(children), 20)
        self.assertEqual({tuple(e["event"] for e in events) for events in children}, {("start", "exception")})
