"""`%load_ext cublame` in a notebook: a failing cell's CUDA error is written down with the cell it came from, and a short
verdict stands below the traceback, which itself stays as it is.

Events are written by the hook of `cublame run`; where the kernel was started without it, the program says where it lies.
Nothing here raises, keeps an exception alive, or touches the GPU.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Set

from .program import HOW_TO_GET, find

# Cells are written by people; one that is longer goes by its hash alone.
LONGEST_SOURCE = 64 << 10

# In seconds. The program answers in hundredths; a notebook may not hang on a disk that does not answer.
PATIENCE = 20

# What `%%time` calls the code below its line.
MAGIC_NAMES = ("<timed exec>", "<timed eval>")


def load_ipython_extension(shell: Any) -> None:
    unload_ipython_extension(shell)
    program = find()
    hook = loaded_hook()
    if hook is None and program is not None:
        hook = load_hook(program)
    if hook is None:
        sys.stderr.write("cublame: failures in this notebook are not recorded, since the program is not installed\n")
        sys.stderr.write("  hint: " + HOW_TO_GET + "\n")
        return
    watch = Watch(shell, hook, program)
    shell.events.register("post_run_cell", watch.after_cell)
    shell._cublame = watch


def unload_ipython_extension(shell: Any) -> None:
    watch = getattr(shell, "_cublame", None)
    if watch is not None:
        shell.events.unregister("post_run_cell", watch.after_cell)
        shell._cublame = None


class Watch:
    """What is remembered between the cells of one kernel."""

    def __init__(self, shell: Any, hook: Any, program: Optional[str]) -> None:
        self.shell = shell
        self.hook = hook
        self.program = program
        # The editor's name of the cell that had this execution count.
        self.ids: Dict[int, str] = {}
        # The hashes of the sources that were written down already.
        self.said: Set[Optional[str]] = set()

    def after_cell(self, result: Any) -> None:
        """IPython shows what a callback raises, so this one raises nothing."""
        try:
            count = result.execution_count or self.shell.execution_count
            cell_id = self.id_of_running_cell(result)
            if cell_id is not None:
                self.ids[count] = cell_id
            error = result.error_in_exec
            if error is not None:
                self.tell(error, count, result.info.raw_cell)
            elif result.error_before_exec is None and cell_id is not None:
                self.hook.write("cell", self.done(count, result.info.raw_cell))
        except Exception:
            pass

    def id_of_running_cell(self, result: Any) -> Optional[str]:
        """As the front end gives it with the request: Jupyter's is the cell's id in the file, VS Code's its address."""
        cell_id = getattr(result.info, "cell_id", None)
        if not isinstance(cell_id, str):
            get_parent = getattr(self.shell, "get_parent", None)
            parent = get_parent() if get_parent is not None else None
            metadata = parent.get("metadata") if isinstance(parent, dict) else None
            cell_id = metadata.get("cellId") if isinstance(metadata, dict) else None
        return cell_id if isinstance(cell_id, str) and cell_id else None

    def tell(self, error: BaseException, count: int, raw_cell: str) -> None:
        cells = {}
        names = getattr(self.shell.compile, "_filename_map", {})
        for file in files_of(error):
            if file in names:
                number = names[file]
                cells[file] = self.cell(number, raw_cell if number == count else self.source_of(number))
            elif file in MAGIC_NAMES and raw_cell.lstrip().startswith("%%"):
                cells[file] = dict(self.cell(count, raw_cell), first_line=first_line_below_magic(raw_cell))
        self.hook.report("ipython", error, error.__traceback__, more={"cells": cells})
        if self.program is not None:
            arguments = [self.program, "notebook", "verdict", "--cell", str(count), os.environ["CUBLAME_RUN"]]
            sys.stderr.write(output_of(arguments))
            sys.stderr.flush()

    def done(self, count: int, raw_cell: str) -> Dict[str, Any]:
        """Of a cell that ran to its end: what it launched may fail in a later one."""
        names = getattr(self.shell.compile, "_filename_map", {})
        cell = dict(self.cell(count, raw_cell), file=next((file for file in reversed(names) if names[file] == count), None))
        if cell["sha256"] in self.said:
            cell["source"] = None
        self.said.add(cell["sha256"])
        return cell

    def cell(self, count: int, source: Optional[str]) -> Dict[str, Any]:
        short = source is not None and len(source) <= LONGEST_SOURCE
        return {
            "id": self.ids.get(count),
            "count": count,
            "notebook": self.notebook(),
            "sha256": None if source is None else hashlib.sha256(source.encode("utf-8", "replace")).hexdigest(),
            # Blank lines before the first are left out of what is run.
            "first_line": 1 if source is None else blank_lines(source) + 1,
            "source": source if short else None,
        }

    def source_of(self, count: int) -> Optional[str]:
        sources: List[str] = getattr(getattr(self.shell, "history_manager", None), "input_hist_raw", [])
        return sources[count] if 0 < count < len(sources) else None

    def notebook(self) -> Optional[str]:
        """The file, as VS Code or Jupyter's server tells it; there is no other way to know."""
        for path in (self.shell.user_ns.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME")):
            if isinstance(path, str) and path.endswith(".ipynb"):
                return os.path.abspath(path)
        return None


def files_of(error: Optional[BaseException]) -> Iterator[str]:
    """The names of all code that an exception, or one before it, came through."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback = error.__traceback__
        while traceback is not None:
            yield traceback.tb_frame.f_code.co_filename
            traceback = traceback.tb_next
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def blank_lines(source: str) -> int:
    """How many blank lines the text begins with."""
    count = 0
    for line in source.split("\n"):
        if line.strip():
            break
        count += 1
    return count


def first_line_below_magic(source: str) -> int:
    magic = blank_lines(source) + 1
    return magic + 1 + blank_lines("\n".join(source.split("\n")[magic:]))


# The hook.


def loaded_hook() -> Optional[Any]:
    """The hook that this kernel was started with."""
    hook = sys.modules.get("_cublame_hook")
    return hook if getattr(hook, "_run", None) is not None else None


def load_hook(program: str) -> Optional[Any]:
    """Starts the hook in a kernel that was started without; None where it cannot be had."""
    mode = os.environ.get("CUBLAME_MODE") or "off"
    try:
        variables = json.loads(output_of([program, "env", "--mode", mode, "--format", "json"]))
        folder = variables["PYTHONPATH"].split(os.pathsep)[0]
        hook: Any = ModuleType("_cublame_hook")
        exec(read_code(folder, "_cublame_hook"), hook.__dict__)
        hook.start(read_code, folder)
        if hook._run is None:
            return None
        sys.modules["_cublame_hook"] = hook
        hook.install()
    except Exception:
        return None
    return hook


def read_code(folder: str, name: str) -> Any:
    with open(os.path.join(folder, name + ".py"), "rb") as file:
        return compile(file.read(), "<cublame>", "exec", dont_inherit=True, optimize=0)


def output_of(arguments: List[str]) -> str:
    """What a command printed; nothing where it failed."""
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
