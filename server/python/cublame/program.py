"""The program `cublame`: where it lies, and how to get it where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Iterator

EXECUTABLE = "cublame.exe" if os.name == "nt" else "cublame"
HOW_TO_GET = "`pip install cublame` brings it; or set CUBLAME to the program's path"


def find() -> str | None:
    """The path of the program; None where there is none."""
    for path in candidates():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def candidates() -> Iterator[str]:
    """The one that the user names, the one installed with this package, the one on the path."""
    named = os.environ.get("CUBLAME")
    if named:
        yield os.path.expanduser(named)
    for folder in script_folders():
        yield os.path.join(folder, EXECUTABLE)
    found = shutil.which("cublame")
    if found:
        yield found


def script_folders() -> list[str]:
    """Where an installer puts programs: beside the interpreter, for the user alone, or beside the package (`--target`)."""
    folders = [sysconfig.get_path("scripts")]
    user_scheme = "nt_user" if os.name == "nt" else "osx_framework_user" if sys.platform == "darwin" else "posix_user"
    if user_scheme in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", user_scheme))
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    return [folder for folder in folders if folder]


def become(arguments: list[str]) -> int:
    """Runs the program in place of this interpreter; the status where it cannot be found, or where there is no exec."""
    program = find()
    if program is None:
        sys.stderr.write("cublame: the program is not installed beside this package\n")
        sys.stderr.write("  hint: " + HOW_TO_GET + "\n")
        return 127
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(program, [program, *arguments])
    return subprocess.call([program, *arguments])
