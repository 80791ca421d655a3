"""Small programs, each with what the hook must tell of it.

Every one is run with and without the hook; bytes and exit code must be equal. `tells` lists the exception events of all
its processes in order: the hook and the type. Where a program has the marker `# @fault`, the last link's deepest frame in
the program's file must be at a marked line.
"""


class Program:
    def __init__(self, name, source, tells=(), needs=(3, 8), before=(99,), options=(), arguments=(), orderly=True):
        self.name = name
        self.source = source
        self.tells = list(tells)
        self.needs = needs
        self.before = before
        self.options = list(options)
        self.arguments = list(arguments)
        # Does the first process reach its atexit?
        self.orderly = orderly


UNCAUGHT = """
def f(x):
    return 1 / x  # @fault
print("before")
f(0)
"""

PROGRAMS = [
    Program("quiet", "print('hello')"),
    Program("uncaught", UNCAUGHT, [("excepthook", "ZeroDivisionError")]),
    Program("uncaught -O", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-O"]),
    Program("uncaught -OO", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-OO"]),
    Program("uncaught -B -u", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-B", "-u"]),
    Program("uncaught -W error", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-W", "error"]),
    Program("uncaught -bb", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-bb"]),
    Program("uncaught -X dev", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-X", "dev", "-W", "error"]),
    Program(
        "uncaught -X warn_default_encoding",
        UNCAUGHT,
        [("excepthook", "ZeroDivisionError")],
        needs=(3, 10),
        options=["-X", "warn_default_encoding", "-W", "error"],
    ),
    Program("uncaught -P", UNCAUGHT, [("excepthook", "ZeroDivisionError")], needs=(3, 11), options=["-P"]),
    Program("uncaught -s", UNCAUGHT, [("excepthook", "ZeroDivisionError")], options=["-s"]),
    Program(
        "caught and printed",
        """
import traceback
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc()
print("survived")
""",
    ),
    Program("exit 0", "import sys; sys.exit(0)"),
    Program("exit 3", "import sys; sys.exit(3)"),
    Program("exit None", "raise SystemExit"),
    Program("exit 300", "raise SystemExit(300)"),
    Program("exit -1", "raise SystemExit(-1)"),
    Program("exit text", "raise SystemExit('no such file')"),
    Program("exit object", "raise SystemExit([1, 2])"),
    Program("exit while handling", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise SystemExit(4)"),
    Program("os._exit", "import os; print('x', flush=True); os._exit(5)", orderly=False),
    Program("abort", "import os; os.abort()", orderly=False),
    Program("killed", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", orderly=False),
    Program("terminated", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", orderly=False),
    Program(
        "segmentation fault",
        "import signal, os; os.kill(os.getpid(), signal.SIGSEGV)",
        orderly=False,
    ),
    Program(
        "keyboard interrupt",
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)  # @fault\ntime.sleep(5)",
        [("excepthook", "KeyboardInterrupt")],
    ),
    Program(
        "thread",
        """
import threading
def work():
    raise ValueError("in a thread")  # @fault
thread = threading.Thread(target=work, name="worker")
thread.start(); thread.join()
print("done")
""",
        [("threading", "ValueError")],
    ),
    Program(
        "thread that exits",
        "import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()",
    ),
    Program(
        "raw thread",
        """
import _thread, time
lock = _thread.allocate_lock(); lock.acquire()
class Release:
    def __del__(self): lock.release()
def work(release):
    raise ValueError("raw")  # @fault
_thread.start_new_thread(work, (Release(),))
lock.acquire()
""",
        [("unraisable", "ValueError")],
    ),
    Program(
        "thread hooks of its own",
        """
import threading
def mine(args): print("mine", args.exc_type.__name__)
threading.excepthook = mine
def work(): 1 / 0
t = threading.Thread(target=work); t.start(); t.join()
threading.excepthook = threading.__excepthook__ if hasattr(threading, "__excepthook__") else threading.excepthook
""",
    ),
    Program(
        "daemon thread at exit",
        """
import threading, time
def work():
    while True: time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
1 / 0  # @fault
""",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program(
        "fork",
        """
import os
pid = os.fork()
if pid == 0:
    raise KeyError("child")  # @fault
os.waitpid(pid, 0)
raise ValueError("parent")  # @fault
""",
        [("excepthook", "KeyError"), ("excepthook", "ValueError")],
    ),
    Program(
        "fork that says nothing",
        "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()",
    ),
    Program(
        "fork in a thread",
        """
import os, threading, warnings
warnings.simplefilter("ignore")
def work():
    pid = os.fork()
    if pid == 0:
        raise KeyError("child")  # @fault
    os.waitpid(pid, 0)
t = threading.Thread(target=work); t.start(); t.join()
""",
        [("threading", "KeyError")],
    ),
    Program(
        "subprocess",
        """
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "raise OSError(2, 'gone', 'x')"]).returncode)
""",
        [("excepthook", "FileNotFoundError")],
    ),
    Program(
        "multiprocessing fork",
        """
import multiprocessing
def work(): raise IndexError("in a child")  # @fault
if __name__ == "__main__":
    p = multiprocessing.get_context("fork").Process(target=work, name="child")
    p.start(); p.join(); print(p.exitcode)
""",
        [("multiprocessing", "IndexError")],
    ),
    Program(
        "multiprocessing spawn",
        """
import multiprocessing
def work(): raise IndexError("in a child")  # @fault
if __name__ == "__main__":
    p = multiprocessing.get_context("spawn").Process(target=work, name="child")
    p.start(); p.join(); print(p.exitcode)
""",
        [("multiprocessing", "IndexError")],
    ),
    Program(
        "multiprocessing forkserver",
        """
import multiprocessing
def work(): raise IndexError("in a child")  # @fault
if __name__ == "__main__":
    p = multiprocessing.get_context("forkserver").Process(target=work, name="child")
    p.start(); p.join(); print(p.exitcode)
""",
        [("multiprocessing", "IndexError")],
    ),
    Program(
        "multiprocessing that exits",
        """
import multiprocessing, sys
if __name__ == "__main__":
    p = multiprocessing.get_context("fork").Process(target=sys.exit, args=(7,), name="child")
    p.start(); p.join(); print(p.exitcode, p.name)
""",
    ),
    Program(
        "process pool",
        """
import concurrent.futures, multiprocessing
def work(n): return 1 // n
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as pool:
        future = pool.submit(work, 0)
        # Whether it is done decides which line of `result` raises.
        concurrent.futures.wait([future])
        future.result()  # @fault
""",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program(
        "thread pool",
        """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    future = pool.submit(int, "x")
    concurrent.futures.wait([future])
    future.result()  # @fault
""",
        [("excepthook", "ValueError")],
    ),
    Program(
        "generator",
        """
def numbers():
    yield 1
    raise RuntimeError("in a generator")  # @fault
print(list(numbers()))
""",
        [("excepthook", "RuntimeError")],
    ),
    Program(
        "recursion",
        "def f(n):\n    return f(n + 1)  # @fault\nf(0)",
        [("excepthook", "RecursionError")],
    ),
    Program("memory", "x = bytearray(1 << 62)  # @fault", [("excepthook", "MemoryError")]),
    Program(
        "hook that replaces ours",
        """
import sys
sys.excepthook = lambda *args: print("mine", args[0].__name__)
1 / 0  # @fault
""",
        [("atexit", "ZeroDivisionError")],
    ),
    Program(
        "hook that calls the one before",
        """
import sys
before = sys.excepthook
def mine(*args):
    print("mine")
    before(*args)
sys.excepthook = mine
1 / 0  # @fault
""",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program(
        "hook that calls the default",
        """
import sys
sys.excepthook = lambda *args: sys.__excepthook__(*args)
1 / 0  # @fault
""",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program(
        "hook that fails",
        "import sys\ndef mine(*args): raise OSError('hook')\nsys.excepthook = mine\n1 / 0  # @fault",
        [("atexit", "ZeroDivisionError")],
    ),
    Program("no hook at all", "import sys\ndel sys.excepthook\n1 / 0  # @fault", [("atexit", "ZeroDivisionError")]),
    Program(
        "hooks look like the defaults",
        """
import sys, threading
print(sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__)
print(threading.excepthook is getattr(threading, "__excepthook__", threading.excepthook))
""",
    ),
    Program("hook called by hand", "import sys\nsys.excepthook(ValueError, ValueError('by hand'), None)", [("excepthook", "ValueError")]),
    Program("hook called with nothing", "import sys\nsys.excepthook(None, None, None)"),
    Program(
        "destructor",
        """
class Leaky:
    def __del__(self): raise ValueError("in __del__")  # @fault
Leaky()
print("goes on")
""",
        [("unraisable", "ValueError")],
    ),
    Program(
        "destructor at the end",
        """
class Leaky:
    def __del__(self): raise ValueError("late")
import builtins
builtins.leaky = Leaky()
leaky = Leaky()
""",
        # The interpreter is half gone by then: what is not loaded can no longer be.
    ),
    Program(
        "many destructors",
        """
class Leaky:
    def __init__(self, number): self.number = number
    def __del__(self): raise ValueError(self.number)  # @fault
for number in range(300): Leaky(number)
""",
        [("unraisable", "ValueError")] * 200,
    ),
    Program(
        "atexit callback",
        "import atexit\n@atexit.register\ndef f():\n    raise ValueError('at exit')  # @fault",
        [("unraisable", "ValueError")],
        needs=(3, 10),
    ),
    Program(
        "chained",
        """
def f():
    try:
        [][0]
    except IndexError as error:
        raise KeyError("k") from error
try:
    f()
except KeyError:
    raise ValueError("v")  # @fault
""",
        [("excepthook", "ValueError")],
    ),
    Program(
        "chain hidden",
        "try:\n    [][0]\nexcept IndexError:\n    raise KeyError('k') from None  # @fault",
        [("excepthook", "KeyError")],
    ),
    Program(
        "chain without end",
        """
a, b = ValueError("a"), ValueError("b")
a.__cause__, b.__cause__ = b, a
raise a  # @fault
""",
        [("excepthook", "ValueError")],
    ),
    Program(
        "long chain",
        """
error = None
for n in range(500):
    next_error = ValueError(n)
    next_error.__cause__ = error
    error = next_error
raise error  # @fault
""",
        [("excepthook", "ValueError")],
    ),
    Program(
        "group",
        """
def leaf(n):
    try:
        raise KeyError(n)
    except KeyError as error:
        return error
raise ExceptionGroup("several", [leaf(1), ExceptionGroup("inner", [leaf(2)])])  # @fault
""",
        [("excepthook", "ExceptionGroup")],
        needs=(3, 11),
    ),
    Program(
        "notes",
        "e = ValueError('v')\ne.add_note('first')\ne.add_note('second')\nraise e  # @fault",
        [("excepthook", "ValueError")],
        needs=(3, 11),
    ),
    Program(
        "surrogates",
        "raise ValueError('bad \\udcff name \\ud83d, \\U0001f600 and \\x00 \\x1b[0m \\u2028')  # @fault",
        [("excepthook", "ValueError")],
    ),
    Program("huge message", "raise ValueError('a' * 100000 + 'b' * 100000)  # @fault", [("excepthook", "ValueError")]),
    Program(
        "message that fails",
        "class E(Exception):\n    def __str__(self): raise KeyError('x')\nraise E  # @fault",
        [("excepthook", "E")],
    ),
    Program(
        "message that exits",
        "class E(Exception):\n    def __str__(self): raise SystemExit(9)\nraise E  # @fault",
        [("excepthook", "E")],
    ),
    Program(
        "message of a foreign value",
        """
class Tensor:
    def __repr__(self): return "the value"
raise ValueError("shape", Tensor())  # @fault
""",
        [("excepthook", "ValueError")],
    ),
    Program("syntax error in exec", "exec('a = (1 +\\n')", [("excepthook", "SyntaxError")]),
    Program("warning made an error", "import warnings\nwarnings.warn('w')  # @fault", [("excepthook", "UserWarning")], options=["-W", "error"]),
    Program("asyncio", "import asyncio\nasync def main():\n    raise OSError('io')  # @fault\nasyncio.run(main())", [("excepthook", "OSError")]),
    Program(
        "standard error closed",
        "import sys\nsys.stderr.close()\n1 / 0  # @fault",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program("no standard error", "import sys\nsys.stderr = None\n1 / 0  # @fault", [("excepthook", "ZeroDivisionError")]),
    Program(
        "files closed as daemons do",
        "import os\nos.closerange(3, 4096)\n1 / 0  # @fault",
        [("excepthook", "ZeroDivisionError")],
    ),
    Program("descriptors", "import os\nprint(os.open('/dev/null', 0), open('/dev/null').fileno())"),
    Program(
        "what it sees",
        """
import os, sys
print(sys.path)
print(sorted(name for name in sys.modules if "site" in name or "cublame" in name and name != "_cublame_hook"))
print("PYTEST_PLUGINS" in os.environ, sys.flags, sys.argv)
print(globals().keys())
""",
        arguments=["one", "two words", ""],
    ),
    Program("shadowed modules", "1 / 0  # @fault", [("excepthook", "ZeroDivisionError")]),
    Program("changes folder", "import os\nos.chdir('/')\n1 / 0  # @fault", [("excepthook", "ZeroDivisionError")]),
    Program(
        "many threads at once",
        """
import threading, sys
sys.stderr = open("/dev/null", "w")
go = threading.Barrier(8)
def work():
    go.wait()
    raise ValueError("all")  # @fault
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
""",
        [("threading", "ValueError")] * 8,
    ),
    Program(
        "signal handler",
        """
import os, signal
def handler(*_): raise TimeoutError("alarm")  # @fault
signal.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
""",
        [("excepthook", "TimeoutError")],
    ),
    Program("objects die as before", """
import sys, weakref
class Thing: pass
def f():
    thing = Thing()
    global watch
    watch = weakref.ref(thing)
    raise ValueError("holds a frame")
import threading
threading.excepthook = threading.excepthook
t = threading.Thread(target=f); t.start(); t.join()
import gc; gc.collect()
print(watch())
""", [("threading", "ValueError")]),
]
