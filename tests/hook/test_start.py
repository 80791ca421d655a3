"""However a program is started; and where the hook is silent, it is silent altogether."""

import os
import subprocess
import zipapp

from harness import CLEAN, HOOK, TARGET, VERSION, Case, since

FAULT = "x = 'é'\n1 / 0\n"


class Started(Case):
    def check(self, *arguments, file=None, line=2, **options):
        event = self.unchanged(*arguments, **options).exception()
        frame = event["chain"][-1]["frames"][-1]
        self.assertEqual((frame["path"], frame["line"]), (file, line))
        return frame

    def test_a_script(self):
        path = self.write("program.py", FAULT)
        self.check("program.py", file=path)
        self.check(path, file=path, cwd="/")

    def test_a_link_to_a_script(self):
        self.write("program.py", FAULT)
        link = os.path.join(self.folder, "link.py")
        os.symlink("program.py", link)
        self.check("link.py", file=link)

    def test_a_module(self):
        path = self.write("pack/__main__.py", FAULT)
        self.write("pack/__init__.py", "")
        self.check("-m", "pack", file=path)
        self.check("pack", file=path)

    def test_a_command_and_standard_input(self):
        self.check("-c", FAULT)
        self.check("-", stdin=FAULT.encode())
        self.check(stdin=FAULT.encode())

    def test_a_zip_application(self):
        self.write("app/__main__.py", FAULT)
        archive = os.path.join(self.folder, "app.pyz")
        zipapp.create_archive(os.path.join(self.folder, "app"), archive)
        frame = self.check("app.pyz")
        self.assertEqual(frame["source"], "1 / 0")

    def test_a_pipe_is_not_read_again(self):
        """`python <(echo 1/0)`: reading the source again would hang."""
        self.write("program.py", FAULT)
        run = os.path.join(self.folder, "run")
        os.makedirs(os.path.join(run, "events"))
        env = dict(CLEAN, PYTHONPATH=HOOK, CUBLAME_RUN=run)
        command = ["bash", "-c", TARGET + " <(cat program.py)"]
        done = subprocess.run(command, env=env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"ZeroDivisionError", done.stderr)
        (name,) = os.listdir(os.path.join(run, "events"))
        with open(os.path.join(run, "events", name)) as file:
            self.assertIn('"ZeroDivisionError"', file.read())

    def test_interactively(self):
        outcome = self.unchanged("-i", "-q", "-c", "1 / 0", stdin=b"2 / 0\nprint(3)\n", env={"PYTHON_COLORS": "0"})
        self.assertEqual(len(outcome.events("exception")), 2)
        self.unchanged("-c", "import code; code.interact(banner='', exitmsg='')", stdin=b"1 / 0\nprint(3)\n")

    def test_a_folder_that_is_gone(self):
        script = self.write("program.py", FAULT)
        gone = os.path.join(self.folder, "gone")
        program = "import os, sys; os.mkdir(%r); os.chdir(%r); os.rmdir(%r); os.execv(sys.executable, [sys.executable, %r])"
        outcome = self.unchanged("-c", program % (gone, gone, gone, script))
        self.assertEqual(outcome.exception()["chain"][0]["frames"][0]["path"], script)

    @since(3, 11)
    def test_a_safe_path(self):
        path = self.write("program.py", FAULT)
        self.check("program.py", file=path, env={"PYTHONSAFEPATH": "1"})

    def test_options(self):
        path = self.write("program.py", FAULT)
        for options in (["-X", "utf8"], ["-X", "importtime"], ["-b"], ["-d"], ["-q"], ["-x"], ["-R"]):
            outcome = self.python(*options, "program.py")
            self.assertEqual(outcome.exception()["chain"][0]["frames"][0]["path"], path)
        self.check("-X", "utf8", "program.py", file=path)

    def test_compiled_files_are_kept_where_python_keeps_none(self):
        self.write("program.py", FAULT)
        self.check("-B", "program.py", file=os.path.join(self.folder, "program.py"), env={"PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual([name for name in os.listdir(self.folder)], ["program.py"])


class Silent(Case):
    oldest = (2, 7)

    def check(self, *arguments, **options):
        self.write("program.py", "print('x')\nraise SystemExit(3)\n")
        outcome = self.unchanged(*arguments, "program.py", **options)
        self.assertEqual((outcome.code, outcome.events()), (3, []))

    def test_where_the_interpreter_is_told_to_ignore_it(self):
        for options in (["-E"], ["-S"]) + ((["-I"],) if VERSION >= (3, 4) else ()):
            self.check(*options)

    def test_where_nobody_asks(self):
        self.check(env={"CUBLAME_RUN": None})
        self.check(env={"CUBLAME_RUN": ""})

    def test_before_the_oldest_python_that_it_knows(self):
        if VERSION >= (3, 8):
            self.skipTest("a newer one")
        self.check()
        self.check(env={"CUBLAME_RUN": None, "CUBLAME_MODE": "off"})
        self.assertEqual(os.listdir(self.folder), ["program.py"])
