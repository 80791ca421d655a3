"""Creates the run of a process that found a mode but no run: under a debugger, or started by an editor.

The rules are those of server/src/session/place.rs and folder.rs; run.json is server/core/src/run.rs.
"""

import os
import stat
import sys
import time

MODES = ("off", "blocking", "trace", "core", "guard", "sanitize")
MARKS = (".vscode", ".idea", ".git", "pyproject.toml")


def create_run(cwd, argv, started, to_json):
    """The path of a new run folder with its run.json; None where none can be made."""
    state = state_folder()
    for folder in (project_folder(cwd), state):
        try:
            run = make_run(folder, started) if folder else None
        except OSError:
            run = None
        if run is not None:
            break
    else:
        return None
    write_aside(run, "run.json", to_json(describe(run, cwd, argv, started)))
    if state:
        try:
            add_to_index(state, to_json({"run": run, "cwd": cwd, "started": started}))
        except OSError:
            pass
    return run


def project_folder(cwd):
    chosen = os.environ.get("CUBLAME_DIR")
    if chosen:
        return os.path.join(cwd, chosen)
    ancestors = [cwd]
    while os.path.dirname(ancestors[-1]) != ancestors[-1]:
        ancestors.append(os.path.dirname(ancestors[-1]))
    for marks in ((".cublame",), MARKS):
        for folder in ancestors:
            if any(os.path.lexists(os.path.join(folder, mark)) for mark in marks):
                return os.path.join(folder, ".cublame")
    return os.path.join(cwd, ".cublame")


def state_folder():
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "cublame")


def make_run(folder, started):
    runs = os.path.join(folder, "runs")
    for made in (folder, runs):
        os.makedirs(made, exist_ok=True)
        # A checked-out project may bring a link here.
        if stat.S_ISLNK(os.lstat(made).st_mode):
            return None
    ignore_in_git(folder if os.path.basename(folder) == ".cublame" else runs)
    while True:
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime(started))
        run = os.path.join(runs, "%s.%03dZ-%s" % (moment, int(started % 1 * 1000), os.urandom(4).hex()))
        try:
            os.mkdir(run, 0o700)
        except FileExistsError:
            continue
        os.mkdir(os.path.join(run, "events"), 0o700)
        return os.path.realpath(run)


def ignore_in_git(folder):
    path = os.path.join(folder, ".gitignore")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return
    try:
        os.write(descriptor, b"# Written by cublame: what it records stays out of the repository.\n*\n")
    except OSError:
        # An empty file left by a full disk would be taken for a finished one for ever.
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def describe(run, cwd, argv, started):
    argv = without_debugger(argv)
    mode = os.environ.get("CUBLAME_MODE", "")
    blocking = os.environ.get("CUDA_LAUNCH_BLOCKING")
    return {
        "schema": 1,
        "id": os.path.basename(run),
        "watch": "adopted",
        "mode": mode if mode in MODES else "off",
        "argv": argv,
        "cwd": cwd,
        "entry": entry(cwd, argv),
        "started": started,
        "host": os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""),
        "runner": None,
        "child": {"pid": os.getpid(), "start": start_time()},
        # Both come from the mode's env block, which an editor or a profile put in force before the interpreter started.
        "blocking": mode == "blocking" and blocking == "1",
        "env": {} if blocking is None else {"CUDA_LAUNCH_BLOCKING": blocking},
    }


def without_debugger(argv):
    """The command as the user would type it: it can be shown and run again, and a debugger's access token stays out of it."""
    for at, word in enumerate(argv[1:], 1):
        name, rest = os.path.basename(word), argv[at + 1 :]
        if name == "debugpy":
            # `--flag value`, but for two flags that stand alone (debugpy, server/cli.py).
            while rest and rest[0].startswith("--"):
                rest = rest[1 if rest[0] in ("--wait-for-client", "--log-to-stderr") else 2 :]
            return argv[:1] + rest
        if name.startswith("pydevd") and name.endswith(".py") and "--file" in rest:
            flags, program = rest[: rest.index("--file")], rest[rest.index("--file") + 1 :]
            return argv[:1] + (["-m"] if "--module" in flags else []) + program
        if name == "launcher" and "debugpy" in word and "--" in rest:
            return argv[:1] + rest[rest.index("--") + 1 :]
        if name.endswith(".py") or word == "-c":
            break
    return argv


def entry(cwd, argv):
    """The script."""
    for argument in argv[1:]:
        if argument in ("-c", "-m"):
            return None
        if argument.endswith(".py"):
            path = os.path.join(cwd, argument)
            if os.path.isfile(path):
                return os.path.normpath(path)
    return None


def start_time():
    """Field 22 of /proc/self/stat (proc(5)); 0 where the system has none."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # The command in field 2 may itself hold spaces and parentheses.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def write_aside(run, name, text):
    aside = os.path.join(run, ".%s.%d" % (name, os.getpid()))
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, (text + "\n").encode("utf-8"))
    finally:
        os.close(descriptor)
    os.rename(aside, os.path.join(run, name))


def add_to_index(state, text):
    os.makedirs(state, exist_ok=True)
    descriptor = os.open(os.path.join(state, "index"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (text + "\n").encode("utf-8"))
    finally:
        os.close(descriptor)
