"""Loads the hook of cublame, then the sitecustomize that this file shadows.

Python imports this file at start-up because `cublame run` puts its folder first on PYTHONPATH.
PyCharm, ddtrace, coverage, Debian and many a site ship a sitecustomize of their own: it runs exactly once, under its own
name, and what it raises reaches site.py as if this file were not there.
The file is valid Python 2.7, so that an old interpreter passes through it in silence.
"""

import os
import sys


def load_hook(folder):
    """The module `_cublame_hook`, started; None where there is nothing to watch for or it cannot be had."""
    if sys.version_info < (3, 8) or not (os.environ.get("CUBLAME_RUN") or os.environ.get("CUBLAME_MODE")):
        return None
    if "_cublame_hook" in sys.modules:
        # Two versions of cublame are on the path, one run within the other: the first one watches.
        return None
    try:
        for function in (read_code, keep):
            # The program's coverage or debugger may be watching when the hook calls these.
            function.__code__ = function.__code__.replace(co_filename="<cublame>")
        hook = type(sys)("_cublame_hook")
        exec(read_code(folder, "_cublame_hook"), hook.__dict__)
        sys.modules["_cublame_hook"] = hook
        hook.start(read_code, folder)
        return hook
    except Exception:
        return None


def read_code(folder, name):
    """The code of a module of this folder, compiled once.

    It goes by the name `<cublame>`, which coverage and debuggers know for no file and leave out of what they show.
    So it is kept apart from the interpreter's own .pyc files, and also where PYTHONDONTWRITEBYTECODE forbids those:
    the folder is cublame's, and compiling takes longer than all the rest of the start.
    """
    import marshal

    source = os.path.join(folder, name + ".py")
    compiled = os.path.join(folder, "__pycache__", "%s.%s.code" % (name, sys.implementation.cache_tag))
    status = os.stat(source)
    stamp = b"%s %d %d\n" % (sys.modules["_frozen_importlib_external"].MAGIC_NUMBER, status.st_mtime_ns, status.st_size)
    try:
        with open(compiled, "rb") as file:
            data = file.read()
        if data.startswith(stamp):
            return marshal.loads(data[len(stamp) :])
    except Exception:
        pass
    with open(source, "rb") as file:
        code = compile(file.read(), "<cublame>", "exec", dont_inherit=True, optimize=0)
    try:
        keep(compiled, stamp + marshal.dumps(code))
    except Exception:
        pass
    return code


def keep(path, data):
    """Writes a file under another name first: many interpreters may start at once."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    aside = "%s.%d" % (path, os.getpid())
    with open(aside, "xb") as file:
        file.write(data)
    os.rename(aside, path)


def import_shadowed(folder):
    """Imports `sitecustomize` as if this file were not there; where there is no other, that is an ImportError."""
    # Python 2 empties a module that nothing refers to, and this one still has to return.
    this = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    # Another one that runs this file as this file runs the next, and stayed on the path, would be found without end.
    running = folders_of_running_sitecustomizes()
    hidden = [(index, entry) for index, entry in enumerate(sys.path) if entry in running]
    sys.path[:] = [entry for entry in sys.path if entry not in running]
    try:
        import sitecustomize
    finally:
        for index, entry in hidden:
            sys.path.insert(index, entry)
    return this, sitecustomize


def folders_of_running_sitecustomizes():
    folders = set()
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "sitecustomize":
            folders.add(os.path.dirname(frame.f_globals.get("__file__") or ""))
        frame = frame.f_back
    return folders


_hook = load_hook(os.path.dirname(__file__))
try:
    import_shadowed(os.path.dirname(__file__))
finally:
    if _hook is not None:
        # After the others: a hook that they set is then found, and called.
        _hook.install()
