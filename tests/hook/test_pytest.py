"""The plugin of pytest, where the interpreter has pytest."""

import os
import re

from harness import Case, has

TESTS = """
import os, subprocess, sys
import pytest

def test_good(): pass

def test_bad():
    assert [1] == [2]  # @fault

@pytest.mark.xfail
def test_expected(): assert False

def test_skipped(): pytest.skip("no")

@pytest.fixture
def broken(): raise KeyError("fixture")

def test_setup(broken): pass

def test_environment():
    assert "PYTEST_PLUGINS" not in os.environ
"""


class Pytest(Case):
    def setUp(self):
        super().setUp()
        if not has("pytest"):
            self.skipTest("no pytest")
        self.file = self.write("test_it.py", TESTS)

    def check(self, *options, told=("AssertionError", "KeyError"), **more):
        without = self.python("-m", "pytest", "-p", "no:cacheprovider", *options, hook=False, **more)
        outcome = self.python("-m", "pytest", "-p", "no:cacheprovider", *options, **more)

        def shown(same):
            return {key: re.sub(rb"\d+\.\d+s|gw\d|object at 0x\w+", b"", value) if key != "exit code" else value
                    for key, value in same.items()}

        self.assertEqual(shown(without.same()), shown(outcome.same()))
        events = outcome.events("exception")
        self.assertEqual(sorted((e["hook"], e["chain"][-1]["type"]) for e in events), [("pytest", name) for name in told])
        return outcome

    def test_failures_are_told(self):
        outcome = self.check()
        event = [e for e in outcome.events("exception") if e["chain"][-1]["type"] == "AssertionError"][0]
        frame = [f for f in event["chain"][-1]["frames"] if f["path"] == self.file][-1]
        self.assertIn("@fault", frame["source"])

    def test_options(self):
        for options in (
            ["-W", "error"],
            ["-p", "no:terminal"],
            ["-p", "no:faulthandler", "-p", "no:unraisableexception", "-p", "no:threadexception"],
            ["--assert=plain"],
            ["-s"],
            ["-v", "-rA"],
        ):
            self.check(*options)

    def test_without_docstrings(self):
        done = self.python("-OO", "-m", "pytest", "-p", "no:cacheprovider", "-W", "error")
        self.assertNotIn(b"rewrit", done.stdout + done.stderr)

    def test_plugins_of_the_user_stay(self):
        self.write("mine.py", "def pytest_report_header(config): return 'MINE'\n")
        env = {"PYTEST_PLUGINS": "mine"}
        self.write("test_it.py", "import os\ndef test(): assert os.environ['PYTEST_PLUGINS'] == 'mine'\ndef test_bad(): [][0]\n")
        outcome = self.check(env=env, python_path=[self.folder], told=["IndexError"])
        self.assertIn(b"MINE", outcome.stdout)

    def test_a_file_that_cannot_be_collected(self):
        self.write("test_it.py", "import no_such_module\n")
        outcome = self.check(told=["_pytest.nodes.Collector.CollectError"])
        self.assertEqual(outcome.code, 2)

    def test_called_twice_by_a_program(self):
        program = "import pytest\nfor _ in range(2): pytest.main(['-q', '-p', 'no:cacheprovider', 'test_it.py'])\n"
        self.write("program.py", program)
        self.write("test_it.py", "def test_bad(): [][0]\n")
        outcome = self.python("program.py")
        self.assertEqual(len([e for e in outcome.events("exception") if e["hook"] == "pytest"]), 2)

    def test_a_pytest_that_a_test_starts_without_us(self):
        inner = self.write("inner/test_inner.py", "def test(): pass\n")
        self.write(
            "test_it.py",
            "import subprocess, sys\ndef test():\n"
            "    subprocess.run([sys.executable, '-I', '-m', 'pytest', '-p', 'no:cacheprovider', %r], check=True)\n" % inner,
        )
        self.check("test_it.py", told=[])

    def test_distributed(self):
        if not has("xdist"):
            self.skipTest("no xdist")
        # One worker, so that the tests end in one order.
        outcome = self.check("-n", "1", "-q")
        self.assertEqual(len({e["pid"] for e in outcome.events("exception")} - {outcome.events()[0]["pid"]}), 1)

    def test_under_coverage(self):
        if not has("coverage"):
            self.skipTest("no coverage")
        report = []
        self.write("test_it.py", "def test_bad(): [][0]\n")
        for hook in (False, True):
            self.python("-m", "coverage", "run", "-m", "pytest", "-p", "no:cacheprovider", hook=hook)
            report.append(self.python("-m", "coverage", "report", hook=False).stdout)
        self.assertEqual(*report)
