"""What an event says."""

import hashlib
import os
import signal

from harness import TARGET, VERSION, Case, since


class Start(Case):
    def test_says_what_was_started_and_where(self):
        self.write("train.py", "")
        outcome = self.python("-B", "train.py", "--lr", "1e-3", env={"CUDA_LAUNCH_BLOCKING": "1"})
        (start,) = outcome.events("start")
        self.assertEqual(start["argv"], [TARGET, "-B", "train.py", "--lr", "1e-3"])
        self.assertEqual(start["cwd"], self.folder)
        self.assertEqual(start["ppid"], os.getpid())
        self.assertTrue(start["python"].startswith("%d.%d." % VERSION))
        self.assertTrue(os.path.samefile(start["executable"], TARGET))
        self.assertEqual(start["launch_blocking"], "1")
        self.assertEqual([start["rank"], start["local_rank"], start["restart"]], [None] * 3)

    def test_says_the_rank_of_each_launcher(self):
        for variables, expected in (
            ({"RANK": "3", "LOCAL_RANK": "1", "TORCHELASTIC_RESTART_COUNT": "2"}, (3, 1, 2)),
            ({"SLURM_PROCID": "5", "SLURM_LOCALID": "0"}, (5, 0, None)),
            ({"OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_LOCAL_RANK": "3"}, (7, 3, None)),
            ({"PMI_RANK": "9"}, (9, None, None)),
            ({"RANK": "first", "SLURM_PROCID": "-1", "PMI_RANK": "99999999999"}, (None, None, None)),
        ):
            (start,) = self.python("-c", "", env=variables).events("start")
            self.assertEqual((start["rank"], start["local_rank"], start["restart"]), expected)

    def test_a_rank_set_later_is_in_the_exception(self):
        outcome = self.python("-c", "import os; os.environ['RANK'] = '6'; 1 / 0")
        self.assertEqual(outcome.exception()["rank"], 6)

    def test_no_secret_is_written(self):
        secret = "hunter2-token"
        self.write("program.py", "password = '%s'\ndef f(key):\n    raise ValueError('no')\nf(password)\n" % secret)
        env = {"AWS_SECRET_ACCESS_KEY": secret, "CUDA_TOKEN": secret}
        outcome = self.python("program.py", secret, env=env)
        holders = []
        for event in outcome.events():
            text = repr({key: value for key, value in event.items() if key != "argv"})
            holders += [event["event"]] if secret in text else []
        self.assertEqual(holders, [])


class Chain(Case):
    def links(self, source, *options):
        self.write("program.py", source)
        outcome = self.unchanged(*options, "program.py")
        return outcome.exception()["chain"]

    def check(self, source, *expected):
        links = self.links(source)
        self.assertEqual([(link["type"], link["message"], link["relation"]) for link in links], list(expected))

    def test_cause_and_context(self):
        self.check(
            """
try:
    try:
        [][0]
    except IndexError as error:
        raise KeyError("k") from error
except KeyError:
    raise ValueError("v")
""",
            ("IndexError", "list index out of range", "cause"),
            ("KeyError", "'k'", "context"),
            ("ValueError", "v", None),
        )

    def test_what_from_none_hides_is_hidden(self):
        self.check("try:\n    [][0]\nexcept IndexError:\n    raise KeyError('k') from None\n", ("KeyError", "'k'", None))

    def test_a_loop_ends(self):
        self.check(
            "a, b = ValueError('a'), ValueError('b')\na.__cause__, b.__cause__ = b, a\nraise a\n",
            ("ValueError", "b", "cause"),
            ("ValueError", "a", None),
        )

    def test_a_long_chain_is_cut_and_counted(self):
        source = "e = None\nfor n in range(500):\n    f = ValueError(n); f.__cause__ = e; e = f\nraise e\n"
        self.write("program.py", source)
        event = self.python("program.py").exception()
        self.assertEqual((len(event["chain"]), event["links_left_out"]), (64, 436))
        self.assertEqual((event["chain"][0]["message"], event["chain"][-1]["message"]), ("0", "499"))

    @since(3, 11)
    def test_the_leaves_of_a_group_come_before_it(self):
        self.check(
            """
def leaf(n):
    try:
        try:
            [][0]
        except IndexError as error:
            raise KeyError(n) from error
    except KeyError as error:
        return error
raise ExceptionGroup("outer", [leaf(1), ExceptionGroup("inner", [OSError(2)])])
""",
            ("IndexError", "list index out of range", "cause"),
            ("KeyError", "1", "group"),
            ("OSError", "2", "group"),
            ("ExceptionGroup", "inner (1 sub-exception)", "group"),
            ("ExceptionGroup", "outer (2 sub-exceptions)", None),
        )

    @since(3, 11)
    def test_a_wide_and_deep_group_is_bounded(self):
        source = """
error = ValueError("deepest")
for _ in range(30): error = ExceptionGroup("g", [error, *[ValueError(n) for n in range(200)]])
raise error
"""
        self.write("program.py", source)
        event = self.python("program.py").exception()
        self.assertLessEqual(len(event["chain"]), 11 * 64)
        self.assertGreater(event["links_left_out"], 0)
        self.assertEqual(event["chain"][-1]["message"], "g (201 sub-exceptions)")

    @since(3, 11)
    def test_notes(self):
        (link,) = self.links("e = ValueError('v')\ne.add_note('one\\ntwo')\ne.__notes__ += [3, 'four']\nraise e\n")
        self.assertEqual(link["notes"], ["one\ntwo", "four"])

    def test_types_are_named_as_a_traceback_names_them(self):
        self.write("pack.py", "class Base(RuntimeError): pass\nclass Outer:\n    class Inner(Base, ValueError): pass\n")
        (link,) = self.links("import pack\nraise pack.Outer.Inner('x')\n")
        self.assertEqual(link["type"], "pack.Outer.Inner")
        self.assertEqual(link["bases"], ["pack.Base", "RuntimeError", "ValueError", "Exception", "BaseException"])
        (link,) = self.links("class Mine(Exception): pass\nraise Mine\n")
        self.assertEqual((link["type"], link["message"]), ("Mine", ""))


class Message(Case):
    def check(self, expression, expected, before=""):
        self.write("program.py", before + "\nraise " + expression + "\n")
        outcome = self.unchanged("program.py")
        self.assertEqual(outcome.exception()["chain"][-1]["message"], expected)

    def test_texts(self):
        self.check("ValueError", "")
        self.check("ValueError('a', 1, None)", "('a', 1, None)")
        self.check("KeyError('k')", "'k'")
        self.check("OSError(2, 'gone', 'x')", "[Errno 2] gone: 'x'")
        self.check("RuntimeError(ValueError('inner'))", "inner")
        self.check("ValueError(pathlib.Path('/a'))", "/a", "import pathlib")
        self.check("ValueError('quote \" back \\\\ tab \\t nul \\0 esc \\x1b line \\u2028')", 'quote " back \\ tab \t nul \0 esc \x1b line \u2028')

    def test_a_lone_surrogate_is_what_standard_error_shows(self):
        self.check("ValueError('\\udcff \\U0001f600')", "\\udcff \U0001f600")

    def test_a_value_of_the_program_is_never_shown(self):
        before = "class Tensor:\n    def __repr__(self):\n        sys.touched = True\n        return 'values'\nimport sys\n"
        self.check("ValueError('shape', Tensor())", "('shape', <Tensor>)", before)
        self.check("ValueError(Tensor())", "<Tensor>", before)
        self.check("KeyError(Tensor())", "<Tensor>", before)
        self.check("ValueError([Tensor()])", "<list>", before)
        self.check("RuntimeError(ValueError(1, Tensor()))", "<ValueError>", before)

    def test_an_unprintable_one(self):
        before = "class E(Exception):\n    def __str__(self): raise SystemExit(9)\n"
        self.check("E", "<exception str() failed>", before)

    def test_a_huge_one_is_cut_in_the_middle(self):
        self.write("program.py", "raise ValueError('a' * 100000 + 'b' * 100000)")
        message = self.unchanged("program.py").exception()["chain"][0]["message"]
        self.assertTrue(message.startswith("a" * 32768 + "\n[... 134464 characters left out ...]\n" + "b" * 32768))


class Place(Case):
    """Lines, and columns in code points."""

    def frames(self, *arguments, **options):
        return self.unchanged(*arguments, **options).exception()["chain"][-1]["frames"]

    def check_columns(self, data, text, name="program.py"):
        """The last frame's place must be exactly `text`, which stands in one line of the file."""
        path = self.write(name, data)
        frame = self.frames(name)[-1]
        self.assertEqual(frame["path"], path)
        line = frame["source"]
        if VERSION < (3, 11):
            self.assertNotIn("column", frame)
            self.assertIn(text, line)
            return
        self.assertEqual(line[frame["column"] - 1 : frame["end_column"] - 1], text)
        self.assertEqual(frame["end_line"], frame["line"])

    def test_ascii(self):
        self.check_columns("x = 0; y = [1 / x]\n", "1 / x")

    def test_beyond_ascii(self):
        self.check_columns("é = 0; s = 'ñ 漢字 \U0001f600'; y = [1 / é, 'ü']\n", "1 / é")

    def test_combining_marks_are_code_points(self):
        self.check_columns("s = 'e\u0301\u0301'; y = 1 / 0\n", "1 / 0")

    def test_another_encoding(self):
        self.check_columns("# -*- coding: latin-1 -*-\né = 'ñ'; y = 1 / 0\n".encode("latin-1"), "1 / 0")
        self.check_columns("#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\né = '\u20ac'; 1 / 0\n".encode("cp1252"), "1 / 0")

    def test_a_byte_order_mark(self):
        self.check_columns("\ufeffé = 'ñ'; 1 / 0\n", "1 / 0")

    def test_other_line_ends_and_form_feeds(self):
        self.check_columns("a = 1\r\n\r\né = 'ñ'; 1 / 0\r\n", "1 / 0")
        self.check_columns("a = 1\ré = 'ñ'; 1 / 0\r", "1 / 0")
        self.check_columns("\x0c\na = '\x0b \x1c \u2028 \x85'\né = 'ñ'; 1 / 0\n", "1 / 0")

    @since(3, 11)
    def test_several_lines(self):
        self.write("program.py", "f = lambda *a: 1 / 0\né = (f(\n  'ñ',\n  2))\n")
        frame = self.frames("program.py")[0]
        self.assertEqual((frame["line"], frame["column"], frame["end_line"], frame["end_column"]), (2, 6, 4, 5))

    @since(3, 11)
    def test_without_ranges_there_are_no_columns(self):
        self.write("program.py", "1 / 0\n")
        frame = self.frames("-X", "no_debug_ranges", "program.py")[0]
        self.assertNotIn("column", {key: value for key, value in frame.items() if value is not None})

    def test_functions(self):
        self.write("program.py", "class Model:\n    def forward(self): 1 / 0\nModel().forward()\n")
        names = [frame["function"] for frame in self.frames("program.py")]
        self.assertEqual(names, ["<module>", "Model.forward" if VERSION >= (3, 11) else "forward"])

    def test_many_frames_are_cut_in_the_middle_and_counted(self):
        self.write("program.py", "def f(n):\n    if n: f(n - 1)\n    else: 1 / 0\nf(498)\n")
        (link,) = self.unchanged("program.py").exception()["chain"]
        self.assertEqual((len(link["frames"]), link["frames_left_out"]), (200, 300))
        self.assertEqual((link["frames"][0]["line"], link["frames"][-1]["line"]), (4, 3))

    def test_a_relative_name_is_resolved_where_the_process_started(self):
        path = self.write("program.py", "import os\nos.chdir('/')\n1 / 0\n")
        self.assertEqual(self.frames("program.py")[0]["path"], path)
        self.assertEqual(self.frames("./program.py")[0]["path"], path)

    def test_a_name_that_is_not_unicode_has_no_path(self):
        name = b"bad-\xff.py"
        with open(os.path.join(self.folder.encode(), name), "wb") as file:
            file.write(b"1 / 0\n")
        frame = self.frames(os.fsdecode(name))[0]
        self.assertIsNone(frame["path"])
        self.assertTrue(frame["file"].endswith("bad-\\udcff.py"))
        self.assertEqual(frame["source"], None)

    def test_what_is_no_file_has_no_path(self):
        frame = self.frames("-c", "1 / 0")[0]
        self.assertEqual((frame["file"], frame["path"]), ("<string>", None))
        frame = self.frames("-", stdin=b"x = 1\n1 / 0\n")[0]
        self.assertEqual((frame["file"], frame["path"], frame["line"]), ("<stdin>", None, 2))
        self.write("<string>", "a file of this name is another thing\n")
        self.assertIsNone(self.frames("-c", "1 / 0")[0]["path"])

    def test_a_line_in_memory(self):
        """As IPython keeps the cells of a notebook."""
        source = "x = 'é'; 1 / 0"
        program = (
            "import linecache\nsource = %r\nname = '/tmp/ipykernel_7/1.py'\n"
            "linecache.cache[name] = (len(source), None, [source + '\\n'], name)\nexec(compile(source, name, 'exec'))\n"
        )
        frame = self.frames("-c", program % source)[-1]
        self.assertEqual((frame["path"], frame["source"]), (None, source))
        if VERSION >= (3, 11):
            self.assertEqual((frame["column"], frame["end_column"]), (10, 15))

    def check_syntax_error(self, data, line, text):
        """`text` is what stands at the column; None where CPython's count is not to be relied on."""
        path = self.write("bad.py", data)
        for arguments in (("bad.py",), ("-c", "import bad")):
            link = self.unchanged(*arguments).exception()["chain"][-1]
            frame = link["frames"][-1]
            self.assertEqual((link["type"], frame["path"], frame["line"]), ("SyntaxError", path, line))
            self.assertEqual(frame["function"], "")
            self.assertIn("+*", frame["source"])
            self.assertNotIn("bad.py", link["message"])
            column = frame.get("column")
            self.assertEqual(column and frame["source"][column - 1 :][: len(text or "")], text)

    def test_a_syntax_error_names_its_place(self):
        self.check_syntax_error("ok = 1\nx = 'n' +* 2\n", 2, "*")
        self.check_syntax_error("ok = 1\né = 'ñ' +* 2\n", 2, None)
        self.check_syntax_error("\ufeffx = 'n' +* 2\n", 1, None)
        self.check_syntax_error("\ufeff\nx = 'n' +* 2\n", 2, "*")


class Files(Case):
    def test_the_hash_is_of_what_is_on_disk(self):
        library = self.write("library.py", "def f():\n    1 / 0\n")
        program = self.write("program.py", "import library\nlibrary.f()\n")
        outcome = self.python("program.py")
        expected = {}
        for path in (library, program):
            with open(path, "rb") as file:
                expected[path] = hashlib.sha256(file.read()).hexdigest()
        self.assertEqual(outcome.exception()["hashes"], expected)
        self.assertEqual(outcome.events("exit")[0]["hashes"], expected)
        self.assertNotIn(True, [frame.get("changed") for frame in outcome.exception()["chain"][0]["frames"]])

    def test_a_file_changed_since_the_start_is_marked(self):
        self.write("library.py", "def f():\n    1 / 0\n")
        self.write(
            "program.py",
            "import library, time\ntime.sleep(0.05)\nwith open('library.py', 'w') as f: n = f.write('# new\\n')\nlibrary.f()\n",
        )
        event = self.python("program.py").exception()
        self.assertEqual([frame.get("changed", False) for frame in event["chain"][0]["frames"]], [False, True])
        self.assertEqual(event["hashes"][os.path.join(self.folder, "library.py")], hashlib.sha256(b"# new\n").hexdigest())

    def test_a_file_that_is_gone_has_no_path(self):
        self.write("program.py", "import os\nos.unlink('program.py')\n1 / 0\n")
        event = self.python("program.py").exception()
        self.assertEqual((event["chain"][0]["frames"][0]["path"], event["hashes"]), (None, {}))


class Threads(Case):
    def test_names(self):
        self.write(
            "program.py",
            """
import threading
def work(): raise ValueError("w")
t = threading.Thread(target=work, name="loader-1"); t.start(); t.join()
raise KeyError("main")
""",
        )
        told = [(e["hook"], e["thread"], e["main_thread"]) for e in self.python("program.py").events("exception")]
        self.assertEqual(told, [("threading", "loader-1", False), ("excepthook", "MainThread", True)])

    def test_a_thread_that_is_not_known_is_not_made_known(self):
        program = """
import _thread, threading
lock = _thread.allocate_lock(); lock.acquire()
class Release:
    def __del__(self): lock.release()
def work(release): raise ValueError("raw")
_thread.start_new_thread(work, (Release(),))
lock.acquire()
print(threading.enumerate())
"""
        self.write("program.py", program)
        event = self.python("program.py").exception()
        self.assertEqual((event["thread"], event["main_thread"]), ("", False))
        self.assertIn(b"[<_MainThread(", self.python("program.py").stdout)
        self.assertNotIn(b"Dummy", self.python("program.py").stdout)

    def test_repetitions_are_counted(self):
        program = "class L:\n    def __init__(self, n): self.n = n\n    def __del__(self): raise ValueError(self.n)\n"
        self.write("program.py", program + "for n in range(300): L(n)\n")
        outcome = self.python("program.py")
        self.assertEqual(len(outcome.events("exception")), 200)
        self.assertEqual(outcome.events("exit")[0]["exceptions_left_out"], 100)


class Processes(Case):
    def test_each_process_has_a_file_of_its_own(self):
        self.write(
            "program.py",
            """
import multiprocessing, os, sys
def work():
    raise IndexError("child")
if __name__ == "__main__":
    p = multiprocessing.get_context(sys.argv[1]).Process(target=work); p.start(); p.join()
    raise KeyError("parent")
""",
        )
        for method in ("fork", "spawn"):
            outcome = self.python("program.py", method)
            files = [(len({e["pid"] for e in events}), [e["event"] for e in events]) for events in outcome.processes()]
            self.assertEqual(files[0], (1, ["start", "exception", "exit"]))
            self.assertIn((1, ["start", "exception"]), [(n, kinds[:2]) for n, kinds in files[1:]])
            child = [e for e in outcome.events("exception") if e["hook"] == "multiprocessing"][0]
            parent = outcome.events("start")[0]["pid"]
            start = [e for e in outcome.events("start") if e["pid"] == child["pid"]][0]
            self.assertEqual(start["ppid"], parent)

    def test_the_remote_traceback_of_a_pool_is_in_the_chain(self):
        self.write(
            "program.py",
            """
import concurrent.futures, multiprocessing
def work(n): return 1 // n
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        pool.submit(work, 0).result()
""",
        )
        remote, raised = self.python("program.py").exception()["chain"]
        self.assertEqual((remote["type"], remote["relation"]), ("concurrent.futures.process._RemoteTraceback", "cause"))
        self.assertIn("in work", remote["message"])
        self.assertEqual(raised["type"], "ZeroDivisionError")


class Crashes(Case):
    CRASH = "import os, signal\ndef crashing():\n    os.kill(os.getpid(), signal.%s)\ncrashing()\n"

    def test_the_stack_goes_into_a_file_beside_the_events(self):
        for name in ("SIGSEGV", "SIGABRT", "SIGBUS"):
            self.write("program.py", self.CRASH % name)
            outcome = self.unchanged("program.py")
            self.assertEqual(outcome.code, -getattr(signal, name))
            (fault,) = outcome.faults()
            with open(fault) as file:
                text = file.read()
            self.assertIn("line 3 in crashing", text)
            self.assertEqual(os.path.basename(fault).split("-")[0], str(outcome.events()[0]["pid"]))

    def test_of_a_forked_child_too(self):
        self.write(
            "program.py",
            "import os, signal\ndef crashing():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
            "if os.fork() == 0: crashing()\nprint(os.wait()[1])\n",
        )
        outcome = self.unchanged("program.py")
        (fault,) = outcome.faults()
        with open(fault) as file:
            self.assertIn("in crashing", file.read())

    def test_a_program_that_wants_it_on_standard_error_has_it_there(self):
        self.write("program.py", self.CRASH % "SIGSEGV")
        outcome = self.unchanged("program.py", env={"PYTHONFAULTHANDLER": "1"})
        self.assertIn(b"in crashing", outcome.stderr)
        # The file is there for a supervisor that asks where a silent process stands.
        self.assertEqual([os.path.getsize(fault) for fault in outcome.faults()], [0])
        outcome = self.unchanged("-X", "faulthandler", "program.py")
        self.assertIn(b"in crashing", outcome.stderr)
        self.write("program.py", "import faulthandler\nfaulthandler.enable()\n" + self.CRASH % "SIGSEGV")
        outcome = self.unchanged("program.py")
        self.assertIn(b"in crashing", outcome.stderr)
