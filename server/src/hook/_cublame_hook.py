"""Writes down what happens to this process: its start, the exceptions that nobody catches, its orderly end.

Each process appends JSON lines to `$CUBLAME_RUN/events/<pid>-<random>.jsonl`; server/core/src/event.rs is their contract.
The program must not notice: nothing here prints, raises, keeps an object of the program alive or imports what the program
might shadow, no descriptor below the program's own stays open, and every failure ends in silence.
What is needed at an exception only is in `_cublame_report.py`, so that the start stays cheap; what only a rerun for a
reproducer does is in `_cublame_capture.py`.

PYTEST_DONT_REWRITE: pytest would warn that it cannot rewrite the assertions of a plugin that is already loaded.
"""

import atexit
import os
import sys
import time

VERSION = 1

# More than these in one process are counted, not written: a loop of failing destructors must not fill the disk.
MOST_EXCEPTIONS = 200

get_ident = sys.modules["_thread"].get_ident
CREATE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
ESCAPES = dict((code, "\\u%04x" % code) for code in list(range(32)) + [34, 92])

# SIGSTKFLT of Linux: neither the kernel nor anybody else sends it.
ASK_FOR_STACKS = 16

RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
WORLD = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
RESTART = ("TORCHELASTIC_RESTART_COUNT",)


class Process:
    """What the hook knows of this process. A fork makes it a process with a file of its own and nothing said yet."""

    def __init__(self):
        self.started = time.time()
        self.cwd = working_directory()
        self.sha256 = find_sha256()
        self.begin_anew()

    def begin_anew(self):
        self.pid = os.getpid()
        self.main_thread = get_ident()
        self.stem = None
        self.begun = False
        self.exceptions = 0
        self.exceptions_left_out = 0
        self.hashes = {}
        self.said = set()
        self.reporting = set()


_process = None
_run = None
_read_code = None
_folder = None
_launch_blocking = None
_loaded = {}
_fault_files = []


def start(read_code, folder):
    """Finds or creates the run, and writes the start event. `read_code(folder, name)` gives the code of a module there."""
    global _process, _run, _read_code, _folder, _launch_blocking
    _read_code = read_code
    _folder = folder
    _launch_blocking = os.environ.get("CUDA_LAUNCH_BLOCKING")
    _process = Process()
    run = os.environ.get("CUBLAME_RUN")
    if run:
        _run = os.path.join(_process.cwd, run)
    else:
        _run = load("_cublame_adopt")["create_run"](_process.cwd, command_line(), _process.started, to_json)
        if _run is not None:
            os.environ["CUBLAME_RUN"] = _run
    if _run is not None:
        begin()


def install():
    """Sets the hooks. Each calls the one that it found; what the program sets later stays as it sets it."""
    if _run is None:
        return
    for step in (
        watch_uncaught,
        watch_threads,
        watch_unraisable,
        watch_exit,
        watch_forks,
        watch_spawned,
        watch_pytest,
        watch_crashes,
        watch_torch,
        arm_capture,
    ):
        try:
            step()
        except Exception:
            pass


# The hooks.


def watch_uncaught():
    found = sys.excepthook

    def excepthook(exc_type, exc_value, traceback):
        try:
            report("excepthook", exc_value, traceback)
        finally:
            found(exc_type, exc_value, traceback)

    # Libraries install their own hook only where `sys.excepthook is sys.__excepthook__`: that has to stay true.
    if found is sys.__excepthook__:
        sys.__excepthook__ = excepthook
    sys.excepthook = excepthook


def watch_threads():
    # threading takes its default from _thread when it is imported, which need not be now.
    threading = sys.modules.get("threading")
    found = sys.modules["_thread"]._excepthook if threading is None else threading.excepthook

    def excepthook(args):
        try:
            if args.exc_type is not SystemExit:
                report("threading", args.exc_value, args.exc_traceback, getattr(args.thread, "name", None))
        finally:
            found(args)

    if threading is None:
        sys.modules["_thread"]._excepthook = excepthook
        return
    if found is getattr(threading, "__excepthook__", None):
        threading.__excepthook__ = excepthook
    threading.excepthook = excepthook


def watch_unraisable():
    found = sys.unraisablehook

    def unraisablehook(unraisable):
        try:
            report("unraisable", unraisable.exc_value, unraisable.exc_traceback)
        finally:
            found(unraisable)

    if found is sys.__unraisablehook__:
        sys.__unraisablehook__ = unraisablehook
    sys.unraisablehook = unraisablehook


def watch_exit():
    """A hook that replaced ours may not have called it, but the interpreter still left the exception in `sys`."""

    def at_exit():
        try:
            value = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            if isinstance(value, BaseException):
                report("atexit", value, value.__traceback__)
            end()
        except Exception:
            pass

    atexit.register(at_exit)


def watch_forks():
    def after_in_child():
        try:
            _process.begin_anew()
            watch_multiprocessing()
        except Exception:
            pass

    os.register_at_fork(after_in_child=after_in_child)


def watch_spawned():
    """A child that multiprocessing spawned is about to import it anyway."""
    if "--multiprocessing-fork" in getattr(sys, "argv", ()):
        import multiprocessing.process

        watch_multiprocessing()


def watch_multiprocessing():
    """multiprocessing prints a child's exception itself, past every hook, but asks for the process's name to do so."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or hasattr(process.BaseProcess.name.fget, "_cublame"):
        return
    found = process.BaseProcess.name
    bootstrap = process.BaseProcess._bootstrap.__code__

    def name(self):
        if sys._getframe(1).f_code is bootstrap:
            value = sys.exc_info()[1]
            if value is not None:
                report("multiprocessing", value, value.__traceback__)
        return found.fget(self)

    name._cublame = True
    process.BaseProcess.name = property(name, found.fset, found.fdel, found.__doc__)


def watch_crashes():
    """The Python stack at a segmentation fault or an abort, in a file beside the events; standard error stays as it was."""
    import faulthandler

    opened = os.open(events_path(".fault"), CREATE | os.O_EXCL, 0o600)
    try:
        kept = move_out_of_the_way(opened)
    finally:
        os.close(opened)
    if not faulthandler.is_enabled():
        faulthandler.enable(file=kept, all_threads=True)
    if sys.platform == "linux":
        # Asked for by the supervisor of a run that has fallen silent. A handler that was there before is called as well.
        faulthandler.register(ASK_FOR_STACKS, file=kept, all_threads=True, chain=has_handler(ASK_FOR_STACKS))
    _fault_files.append((_process.pid, events_path(".fault")))


def has_handler(number):
    """The default action is to end the process: that is not to be chained to."""
    return callable(sys.modules["_signal"].getsignal(number)) if "_signal" in sys.modules else False


def move_out_of_the_way(descriptor):
    """A copy with a high number: the program's own files keep the numbers that they have without us."""
    for number in (1000, 500, 250, 120):
        try:
            os.fstat(number)
        except OSError:
            try:
                return os.dup2(descriptor, number, inheritable=False)
            except OSError:
                pass
    raise OSError("no descriptor is free")


def watch_pytest():
    sys.meta_path.insert(0, PytestWatch)


class PytestWatch:
    """Makes this module a plugin of pytest, if and when pytest is imported.

    PYTEST_PLUGINS is set for that moment only. Left in the environment it would break a pytest that a test starts without
    our folder on its path (`python -I`, a cleared PYTHONPATH): it refuses to run without a plugin that it cannot import.
    """

    before = None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "_pytest.config":
            cls.offer()
        return None

    @classmethod
    def offer(cls):
        cls.before = os.environ.get("PYTEST_PLUGINS")
        os.environ["PYTEST_PLUGINS"] = cls.before + "," + __name__ if cls.before else __name__

    @classmethod
    def withdraw(cls):
        if cls.before is None:
            os.environ.pop("PYTEST_PLUGINS", None)
        else:
            os.environ["PYTEST_PLUGINS"] = cls.before


def pytest_addoption():
    """pytest has loaded this plugin."""
    PytestWatch.withdraw()


def pytest_unconfigure():
    """A program may call `pytest.main` again."""
    PytestWatch.offer()


def pytest_exception_interact(call):
    """A test failed, or could not be collected; skipped and expected failures do not come here."""
    value = call.excinfo.value
    report("pytest", value, value.__traceback__)


def watch_torch():
    """In mode guard: the guard is put in force as soon as torch is imported."""
    if os.environ.get("CUBLAME_MODE") == "guard":
        after_torch(put_guard_in_force)
    if is_more_asked():
        after_torch(lambda: arrange(sys.modules["torch"]))


def arm_capture():
    """For `cublame repro --minimal`, which runs the program again to see what one call is given."""
    wish = os.environ.get("CUBLAME_CAPTURE")
    if wish:
        after_torch(lambda: load("_cublame_capture")["arm"](wish))


def after_torch(action):
    """Does it when torch has been imported."""
    if "torch" in sys.modules:
        attempt(action)
        return
    TorchWatch.actions.append(action)
    if TorchWatch not in sys.meta_path:
        sys.meta_path.insert(0, TorchWatch)


def attempt(action):
    """What fails here must not come out of the program's `import torch`."""
    try:
        action()
    except Exception as error:
        sys.stderr.write("cublame: %s\n" % error)


class TorchWatch:
    """Finds torch as the others find it, and is told when its module has run.

    Many a library asks whether torch can be found, without importing it.
    """

    asking = set()
    actions = []

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        ident = get_ident()
        if name != "torch" or ident in cls.asking:
            return None
        cls.asking.add(ident)
        try:
            spec = sys.modules["_frozen_importlib"]._find_spec(name, path, target)
        finally:
            cls.asking.discard(ident)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = TorchLoader(spec.loader)
        return spec


class TorchLoader:
    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if TorchWatch in sys.meta_path:
            sys.meta_path.remove(TorchWatch)
            for action in TorchWatch.actions:
                attempt(action)


def is_more_asked():
    return "1" in (os.environ.get("CUBLAME_MEMORY"), os.environ.get("CUBLAME_ANOMALY"))


_keepers = []


def arrange(torch):
    try:
        keeper = load("_cublame_torch")["arrange"](torch, load("_cublame_locals")["is_users"])
        if keeper is not None:
            _keepers.append(keeper)
    except Exception as error:
        sys.stderr.write("cublame: --memory and --anomaly cannot be put in force: %s.\n" % error)


def held_memory(chain):
    """What held the memory, where the exception says that it ran out."""
    for link in chain if _keepers else ():
        if link["type"].endswith("OutOfMemoryError"):
            return _keepers[0].taken()
    return None


# In the order in which they import each other. The files are those of the package `cublame`, and go by its names: a program
# that has the package installed and says `cublame.guard()` gets this guard, not a second one.
GUARD = (
    "guard_say",
    "guard_errors",
    "guard_rules",
    "guard_check",
    "guard_late",
    "guard_kernel",
    "guard_ops",
    "guarding",
)


def put_guard_in_force():
    try:
        for name in GUARD:
            full_name = "cublame." + name
            module = type(sys)(full_name)
            module.__package__ = "cublame"
            sys.modules[full_name] = module
            exec(_read_code(_folder, "_cublame_" + name), module.__dict__)
        sys.modules["cublame.guarding"].install()
    except Exception as error:
        sys.stderr.write("cublame: the guard cannot be put in force, so the program runs unguarded: %s.\n" % error)


# The events.


def begin():
    process = _process
    process.stem = "%d-%s" % (process.pid, os.urandom(4).hex())
    process.begun = write(
        "start",
        {
            "ppid": os.getppid(),
            "argv": command_line(),
            "cwd": process.cwd,
            "python": "%d.%d.%d" % sys.version_info[:3],
            "executable": sys.executable or "",
            "rank": number_of(RANK),
            "local_rank": number_of(LOCAL_RANK),
            "world_size": number_of(WORLD),
            "host": os.uname().nodename if hasattr(os, "uname") else None,
            "restart": number_of(RESTART),
            "launch_blocking": _launch_blocking,
        },
    )


def report(hook, value, traceback, thread=None, more=None):
    """Writes down an exception, once, with `more` fields. Nothing but KeyboardInterrupt leaves this function."""
    ident = get_ident()
    process = _process
    if process.pid != os.getpid():
        # Forked by a library in C, which tells nobody.
        process.begin_anew()
    if not isinstance(value, BaseException) or ident in process.reporting:
        return
    process.reporting.add(ident)
    try:
        process.exceptions += 1
        if process.exceptions > MOST_EXCEPTIONS:
            process.exceptions_left_out += 1
            return
        description = load("_cublame_report")["describe"](value, traceback, process, locals_of_event())
        held = held_memory(description["chain"])
        if held is not None:
            description["memory"] = held
        description["hook"] = hook
        description["thread"] = thread or thread_name(ident)
        description["main_thread"] = ident == process.main_thread
        description["rank"] = number_of(RANK)
        description.update(more or {})
        # The same exception told of again, by another hook or in a loop. None is kept alive to know it by.
        told = description["chain"][-1]
        place = [(frame["file"], frame["line"]) for frame in told["frames"][-1:]]
        sign = (id(value), description["thread"], told["type"], hash(told["message"]), *place)
        if sign in process.said:
            process.exceptions_left_out += hook != "atexit"
            return
        process.said.add(sign)
        if not process.begun:
            begin()
        write("exception", description)
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass
    finally:
        process.reporting.discard(ident)


def locals_of_event():
    """What may be told of the frames' tensors, where there can be any. The event matters more."""
    try:
        if any(library in sys.modules for library in ("torch", "numpy", "cupy", "jax")):
            return load("_cublame_locals")["Locals"]()
    except Exception:
        pass
    return None


def end():
    if _process.pid == os.getpid() and _process.begun:
        write("exit", {"hashes": _process.hashes, "exceptions_left_out": _process.exceptions_left_out})
    for pid, path in _fault_files:
        if pid == os.getpid() and os.stat(path).st_size == 0:
            os.unlink(path)


def write(event, fields):
    """Appends one line in one write. False when it could not be written: no disk, no folder, no right to."""
    line = {"v": VERSION, "time": time.time(), "pid": _process.pid, "event": event}
    line.update(fields)
    data = (to_json(line) + "\n").encode("utf-8")
    try:
        descriptor = os.open(events_path(".jsonl"), CREATE, 0o600)
    except OSError:
        return False
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            # A full disk: the reader loses this line, not the next one with it.
            os.write(descriptor, b"\n")
        return written == len(data)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def events_path(ending):
    return os.path.join(_run, "events", _process.stem + ending)


# Values.


def to_json(value):
    """JSON without the json module: the program may have one of its own by that name, and it is slow to load."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + plain(value).translate(ESCAPES) + '"'
    if isinstance(value, dict):
        return "{" + ",".join([to_json(key) + ":" + to_json(item) for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([to_json(item) for item in value]) + "]"
    return repr(value)


def plain(string):
    """Text as standard error prints it: a lone surrogate, which JSON cannot hold, becomes its escape."""
    return string.encode("utf-8", "backslashreplace").decode("utf-8")


def command_line():
    """The interpreter's own arguments included, where it or the system tells them."""
    argv = getattr(sys, "orig_argv", None)
    if not argv:
        try:
            with open("/proc/self/cmdline", "rb") as file:
                argv = [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
        except OSError:
            argv = None
    return list(argv or getattr(sys, "argv", None) or [])


def number_of(names):
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit() and value.isascii() and int(value) < 1 << 32:
            return int(value)
    return None


def thread_name(ident):
    """Without threading.current_thread(), which would register a thread that it does not know."""
    threading = sys.modules.get("threading")
    thread = getattr(threading, "_active", {}).get(ident)
    if thread is not None:
        return thread.name
    return "MainThread" if ident == _process.main_thread else ""


def working_directory():
    try:
        return os.getcwd()
    except OSError:
        return ""


def find_sha256():
    """From the interpreter's own module: hashlib loads OpenSSL. At the start, for the reason that _cublame_report.py gives."""
    for name in ("_sha2", "_sha256") if sys.version_info >= (3, 12) else ("_sha256",):
        try:
            return __import__(name).sha256
        except (ImportError, AttributeError):
            pass
    return None


def load(name):
    """The namespace of a module beside this one, without a trace in sys.modules."""
    if name not in _loaded:
        namespace = {"__name__": name}
        exec(_read_code(_folder, name), namespace)
        _loaded[name] = namespace
    return _loaded[name]
