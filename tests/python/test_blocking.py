"""`cublame.blocking()` without a GPU: a stand-in driver fails as a device does, when it is next waited for.

usage: test_blocking.py   (under the interpreter in question)
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.normpath(os.path.join(HERE, "..", "..", "server", "python"))
HAS_MONITORING = sys.version_info >= (3, 12)


def setUpModule():
    global folder, env
    folder = tempfile.TemporaryDirectory()
    where = folder.name
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "%s/libcuda.so.1" % where, "%s/standin.c" % HERE], check=True)
    packages = os.path.join(where, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    os.makedirs(packages)
    with open(os.path.join(HERE, "kernels.py")) as source, open(os.path.join(packages, "kernels.py"), "w") as copy:
        copy.write(source.read())
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUBLAME", "PYTHON", "CUDA_"))}
    env.update(LD_LIBRARY_PATH=where, PYTHONUSERBASE=where, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1")


def tearDownModule():
    folder.cleanup()


def run(program):
    """The exit code, standard output and standard error of a program that ends in files of its own."""
    path = os.path.join(folder.name, "program.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(program))
    done = subprocess.run([sys.executable, path], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Blames(unittest.TestCase):
    """The exception surfaces in the program's line that is marked."""

    def check(self, program):
        lines = textwrap.dedent(program).splitlines()
        marked = next(number for number, line in enumerate(lines, 1) if "# @fault" in line)
        code, _, errors = run(program)
        self.assertEqual(code, 1, errors)
        self.assertRegex(errors, "DeviceError: CUDA error: an illegal memory access was encountered")
        surfaced = re.findall(r'program\.py", line (\d+)', errors)[-1]
        self.assertEqual(int(surfaced), marked, errors)

    def test_a_function_in_c(self):
        self.check("""
            import cublame, kernels
            with cublame.blocking():
                function, address, arguments = kernels.launch_in_c(1)
                function(address, arguments)  # @fault
                print("innocent")
        """)

    def test_a_library_function_in_python(self):
        self.check("""
            import cublame, kernels
            def step():
                kernels.launch(0)
                kernels.launch(1)  # @fault
                print("innocent")
            with cublame.blocking():
                step()
        """)

    def test_a_launch_as_triton_writes_it(self):
        self.check("""
            import cublame, kernels
            with cublame.blocking():
                kernels.Kernel()[1, 1](0)
                kernels.Kernel()[1, 1](1)  # @fault
                print("innocent")
        """)

    @unittest.skipUnless(HAS_MONITORING, "operators are seen since Python 3.12")
    def test_an_operator(self):
        self.check("""
            import cublame, kernels
            def step(good, bad):
                a = good + good
                b = bad[0]  # @fault
                return a
            with cublame.blocking():
                step(kernels.Array(), kernels.Array(1))
        """)

    def test_a_function_that_was_running_already(self):
        self.check("""
            import cublame, kernels
            def rows():
                yield 1
                kernels.launch(1)  # @fault
                yield 2
            started = rows()
            next(started)
            with cublame.blocking():
                next(started)
        """)

    def test_what_was_launched_before(self):
        self.check("""
            import cublame, kernels
            kernels.launch(1)
            with cublame.blocking():  # @fault
                kernels.launch(0)
        """)

    def test_a_decorated_function(self):
        self.check("""
            import cublame, kernels
            @cublame.blocking
            def step(bad):
                kernels.launch(bad)  # @fault
                print("innocent")
            step(0)
            step(1)
        """)

    def test_a_block_in_a_block(self):
        self.check("""
            import cublame, kernels
            waits = cublame.blocking()
            with waits:
                with waits:
                    kernels.launch(0)
                kernels.launch(1)  # @fault
                print("innocent")
        """)

    def test_a_second_block(self):
        self.check("""
            import cublame, kernels
            def step(bad):
                kernels.launch(bad)  # @fault
                print("innocent")
            with cublame.blocking():
                step(0)
            step(0)
            with cublame.blocking():
                step(1)
        """)


class LeavesAlone(unittest.TestCase):
    def check(self, program, output="done\n"):
        self.assertEqual(run(program), (0, output, ""))

    def test_nothing_is_waited_for_after_the_block_or_in_other_threads(self):
        self.check("""
            import threading, cublame, kernels
            def step():
                for _ in range(10):
                    kernels.launch(0)
            before = kernels.driver.waits_so_far()
            with cublame.blocking():
                worker = threading.Thread(target=step)
            step()
            entered = kernels.driver.waits_so_far()
            assert entered > before
            step()
            assert kernels.driver.waits_so_far() == entered
            with cublame.blocking():
                started = kernels.driver.waits_so_far()
                worker.start(); worker.join()
                waited = kernels.driver.waits_so_far() - started
                assert 0 < waited < 10, waited
            print("done")
        """)

    def test_a_capture(self):
        self.check("""
            import cublame, kernels
            kernels.driver.cuBeginCapture(1)
            with cublame.blocking():
                kernels.launch(0)
            assert kernels.driver.waits_so_far() == 0
            print("done")
        """)

    def test_a_program_without_cuda(self):
        self.check("""
            import sys, cublame
            with cublame.blocking():
                value = sum(range(10))
            assert "ctypes" in sys.modules and "torch" not in sys.modules
            assert sys.getprofile() is None
            print("done" if value == 45 else value)
        """)

    def test_the_programs_own_exception(self):
        self.check("""
            import sys, cublame, kernels
            try:
                with cublame.blocking():
                    {}["missing"]
            except KeyError as error:
                print("done")
            assert sys.getprofile() is None
            if hasattr(sys, "monitoring"):
                assert sys.monitoring.get_tool(3) is None
        """)

    def test_values_and_signatures_of_decorated_functions(self):
        self.check("""
            import cublame, inspect
            @cublame.blocking(calls=False)
            def step(a, b=2):
                "What it does."
                return a + b
            assert step(1) == 3 and step.__doc__ == "What it does."
            print(inspect.signature(step))
        """, "(a, b=2)\n")

    def test_coroutines_are_refused(self):
        self.check("""
            import cublame
            try:
                @cublame.blocking
                async def step():
                    pass
            except TypeError as error:
                print(error)
        """, "cublame.blocking cannot decorate step: it gives up its thread in the middle. "
             "Write `with cublame.blocking():` in it, round lines that do not await or yield.\n")

    @unittest.skipUnless(HAS_MONITORING, "sys.monitoring is new in Python 3.12")
    def test_another_tools_events(self):
        self.check("""
            import sys, cublame
            lines = []
            sys.monitoring.use_tool_id(0, "a debugger")
            sys.monitoring.register_callback(0, sys.monitoring.events.LINE, lambda code, line: lines.append(line))
            def step():
                a = 1
                return a + 1
            sys.monitoring.set_local_events(0, step.__code__, sys.monitoring.events.LINE)
            with cublame.blocking():
                step()
            step()
            assert len(lines) == 4, lines
            print("done")
        """)

    @unittest.skipIf(HAS_MONITORING, "a profile function has a place of its own since Python 3.12")
    def test_a_profiler(self):
        code, output, errors = run("""
            import cProfile, cublame
            profiler = cProfile.Profile()
            profiler.enable()
            with cublame.blocking():
                pass
            profiler.disable()
            print("done")
        """)
        self.assertEqual((code, output), (0, "done\n"))
        self.assertIn("program.py:5: RuntimeWarning: cublame.blocking waits for the operations of torch only: a profiler is on", errors)


if __name__ == "__main__":
    unittest.main()
