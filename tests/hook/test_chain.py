"""The sitecustomize that ours shadows runs exactly once, as itself, and fails as without us."""

import os
import shutil

from harness import HOOK, VERSION, Case

SEES = """
import sys
this = sys.modules.get("sitecustomize")
sys.stdout.write("%s %s %s\\n" % (__name__, __file__.replace(".pyc", ".py"), this is not None and this.__dict__ is globals()))
"""

# What PyCharm's does (pydev/pycharm_display and helpers/pycharm_matplotlib_backend ship it): off the path, import, back.
PYCHARM = """
import os, sys
folder = os.path.dirname(os.path.realpath(__file__))
sys.path.remove(folder)
before = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = before
sys.path.insert(0, folder)
print("pycharm")
"""

# What ddtrace's bootstrap does.
DDTRACE = """
import os, sys
folder = os.path.abspath(os.path.dirname(__file__))
paths = [os.path.abspath(path) for path in sys.path]
if folder in paths:
    index = paths.index(folder)
    del sys.path[index]
    mine = sys.modules["sitecustomize"]
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize
    except ImportError:
        sys.modules["sitecustomize"] = mine
    finally:
        sys.path.insert(index, folder)
print("ddtrace")
"""

# One that runs the next file that it finds, and stays on the path itself: whoever chains after it finds it again.
CARELESS = """
import os, sys
print("careless")
mine = sys.modules.pop("sitecustomize")
folder = os.path.dirname(__file__)
for entry in list(sys.path):
    file = os.path.join(entry, "sitecustomize.py")
    if entry != folder and os.path.isfile(file):
        with open(file) as source:
            code = compile(source.read(), file, "exec")
        try:
            exec(code, {"__name__": "sitecustomize", "__file__": file})
        except ImportError:
            pass
        break
sys.modules["sitecustomize"] = mine
"""

# A second run of Python 2 finds the .pyc of the first.
PROGRAM = """
import sys
print('sitecustomize' in sys.modules)
print(getattr(sys.modules.get('sitecustomize'), '__file__', '').replace('.pyc', '.py'))
"""


class Shadowed(Case):
    oldest = (2, 7)

    def check(self, *arguments, **options):
        """As `unchanged`; the old interpreters, where the hook is silent, included."""
        outcome = self.unchanged(*arguments, **options)
        self.assertEqual(len(outcome.events("start")), VERSION >= (3, 8))
        return outcome

    def folder_with(self, name, text, file="sitecustomize.py"):
        return os.path.dirname(self.write(os.path.join(name, file), text))

    def test_there_is_none(self):
        """Or only the system's, as on Debian."""
        there = b"True" in self.check("-c", PROGRAM).stdout
        outcome = self.check("-c", "import sitecustomize")
        self.assertEqual(b"No module named" in outcome.stderr, not there)

    def test_it_is_itself(self):
        folder = self.folder_with("a", SEES)
        outcome = self.check("-c", PROGRAM, python_path=[folder])
        self.assertIn(b"sitecustomize " + os.fsencode(folder) + b"/sitecustomize.py True", outcome.stdout)
        self.assertEqual(outcome.stdout.count(b"sitecustomize.py True"), 1)

    def test_a_package(self):
        folder = self.folder_with("a", SEES, "sitecustomize/__init__.py")
        self.check("-c", PROGRAM, python_path=[os.path.dirname(folder)])

    def test_in_a_zip_file(self):
        self.folder_with("a", "print('zipped')")
        archive = shutil.make_archive(os.path.join(self.folder, "site"), "zip", os.path.join(self.folder, "a"))
        outcome = self.check("-c", PROGRAM, python_path=[archive])
        self.assertIn(b"zipped", outcome.stdout)

    def test_only_the_first_one_runs(self):
        first, second = self.folder_with("a", "print('first')"), self.folder_with("b", "print('second')")
        self.assertNotIn(b"second", self.check("-c", PROGRAM, python_path=[first, second]).stdout)

    def test_what_it_does_stays(self):
        folder = self.folder_with("a", "import sys, os\nsys.path.insert(0, '/added')\nos.environ['SET'] = '1'\nx = 1\n")
        program = "import sys, os, sitecustomize; print(sys.path, os.environ['SET'], sitecustomize.x)"
        self.assertIn(b"/added", self.check("-c", program, python_path=[folder]).stdout)

    def test_its_failures_are_site_pys_to_handle(self):
        for text in (
            "raise ValueError('broken')",
            "import no_such_module_anywhere",
            "raise ImportError('plain')",
            "def f(:",
            "import sys; sys.exit(3)",
            "raise KeyboardInterrupt",
            "import sys; sys.stderr.write('said\\n'); 1 / 0",
        ):
            folder = self.folder_with("a", text)
            outcome = self.python("-c", PROGRAM, python_path=[folder])
            without = self.python("-c", PROGRAM, python_path=[folder], hook=False)
            shown = [without.same(), outcome.same()]
            if "KeyboardInterrupt" in text or "exit" in text:
                # These pass through site.py, and the interpreter prints the frames that they came by.
                shown = [[same["exit code"], same["stdout"], same["stderr"].splitlines()[-1:]] for same in shown]
            self.assertEqual(*shown, msg=text)

    def test_the_hook_watches_after_a_failure(self):
        folder = self.folder_with("a", "raise ValueError('broken')")
        outcome = self.check("-c", "1 / 0", python_path=[folder])
        self.assertEqual(len(outcome.events("exception")), VERSION >= (3, 8))

    def test_others_that_chain_as_well(self):
        for name, text in (("pycharm", PYCHARM), ("ddtrace", DDTRACE), ("careless", CARELESS)):
            other, last = self.folder_with(name, text), self.folder_with("last", "print('last')")
            for entries in ([HOOK, other, last], [other, HOOK, last], [HOOK, other], [other, HOOK]):
                bare = [entry for entry in entries if entry != HOOK]
                without = self.python("-c", "print('program')", hook=False, python_path=bare)
                run = {"PYTHONPATH": os.pathsep.join(entries)}
                outcome = self.python("-c", "print('program')", env=run)
                self.assertEqual(without.same(), outcome.same(), (name, entries))
                self.assertEqual(len(outcome.events("start")), VERSION >= (3, 8), (name, entries))
                self.assertLessEqual(outcome.stdout.count(b"last"), 1)

    def test_the_hook_twice_on_the_path(self):
        other = os.path.join(self.folder, "an-other-version")
        shutil.copytree(HOOK, other, ignore=shutil.ignore_patterns("__pycache__"))
        last = self.folder_with("last", "print('last')")
        for first in (HOOK, other):
            outcome = self.check("-c", "1 / 0", python_path=[first, last])
            self.assertEqual(outcome.stdout, b"last\n")
            self.assertEqual(len(outcome.events("exception")), VERSION >= (3, 8))

    def test_usercustomize_runs_too(self):
        ask = "import site; print(site.USER_SITE if site.ENABLE_USER_SITE else '')"
        where = self.python("-c", ask, hook=False, env={"PYTHONUSERBASE": self.folder})
        if not where.stdout.strip():
            self.skipTest("this interpreter looks into no folder of the user's")
        self.write(os.path.join(where.stdout.decode().strip(), "usercustomize.py"), "print('user')")
        folder = self.folder_with("a", "print('site')")
        outcome = self.check("-c", "print('program')", python_path=[folder], env={"PYTHONUSERBASE": self.folder})
        self.assertEqual(outcome.stdout, b"site\nuser\nprogram\n")


class Found(Case):
    """The hooks that another sitecustomize set are called."""

    def test_theirs_are_called_after_ours_has_told(self):
        text = """
import sys, threading
sys.excepthook = lambda *args: print("theirs", args[0].__name__)
threading.excepthook = lambda args: print("theirs", args.exc_type.__name__)
sys.unraisablehook = lambda args: print("theirs", args.exc_type.__name__)
"""
        program = """
import threading
class L:
    def __del__(self): raise KeyError
L()
t = threading.Thread(target=lambda: [][0]); t.start(); t.join()
1 / 0
"""
        folder = os.path.dirname(self.write("a/sitecustomize.py", text))
        self.write("program.py", program)
        outcome = self.unchanged("program.py", python_path=[folder])
        self.assertEqual(outcome.stdout, b"theirs KeyError\ntheirs IndexError\ntheirs ZeroDivisionError\n")
        told = [(event["hook"], event["chain"][-1]["type"]) for event in outcome.events("exception")]
        self.assertEqual(
            told, [("unraisable", "KeyError"), ("threading", "IndexError"), ("excepthook", "ZeroDivisionError")]
        )

    def test_debians(self):
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("no /usr/bin/python3")
        outcome = self.unchanged("-c", PROGRAM, python="/usr/bin/python3")
        self.assertEqual(len(outcome.events("start")), 1)


class Environments(Case):
    def test_a_virtual_environment(self):
        folder = os.path.join(self.folder, "venv")
        made = self.python("-m", "venv", "--without-pip", folder, hook=False)
        self.assertEqual(made.code, 0, made.stderr)
        python = os.path.join(folder, "bin", "python")
        outcome = self.unchanged("-c", "import sys; print(sys.prefix, sys.path)\n1 / 0", python=python)
        self.assertEqual(len(outcome.events("exception")), 1)
        self.assertEqual(outcome.events("start")[0]["executable"], python)

    def test_python_home(self):
        prefix = self.python("-c", "import sys; print(sys.base_prefix)", hook=False).stdout.decode().strip()
        outcome = self.unchanged("-c", "1 / 0", env={"PYTHONHOME": prefix})
        self.assertEqual(len(outcome.events("exception")), 1)
