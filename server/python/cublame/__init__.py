"""Finds the line behind a CUDA failure.

    with cublame.blocking():        # wait for the device after every operation in here
        loss = model(batch)

    with cublame.guard():           # check indices, labels and probabilities before they are launched
        loss = model(batch)

    except RuntimeError as error:
        cublame.explain(error)      # which line, how sure, why, what to do

    %load_ext cublame               # in a notebook

`python -m cublame run -- python train.py` is the program itself; importing this package starts nothing and needs nothing,
torch included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .explaining import explain as explain
    from .explaining import verdicts as verdicts
    from .guard_errors import GuardError as GuardError
    from .guard_errors import GuardIndexError as GuardIndexError
    from .guard_errors import GuardValueError as GuardValueError
    from .guarding import guard as guard
    from .waiting import blocking as blocking

__all__ = [
    "GuardError",
    "GuardIndexError",
    "GuardValueError",
    "blocking",
    "explain",
    "guard",
    "load_ipython_extension",
    "unload_ipython_extension",
    "verdicts",
]

# Where each name comes from; it is imported when it is first asked for. No module bears the name of what it gives:
# importing a submodule binds its name in the package, and `cublame.guard` would then be the module.
SOURCES = {
    "GuardError": "guard_errors",
    "GuardIndexError": "guard_errors",
    "GuardValueError": "guard_errors",
    "blocking": "waiting",
    "explain": "explaining",
    "guard": "guarding",
    "verdicts": "explaining",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = installed_version()
    elif name in SOURCES:
        from importlib import import_module

        value = getattr(import_module("." + SOURCES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *SOURCES, "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cublame`."""
    from . import notebook  # type: ignore[attr-defined,unused-ignore]

    notebook.load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext cublame`."""
    from . import notebook  # type: ignore[attr-defined,unused-ignore]

    unload = getattr(notebook, "unload_ipython_extension", None)
    if unload is not None:
        unload(shell)


def installed_version() -> str:
    """Of the installed package; a source tree on the path has none."""
    from importlib import metadata

    try:
        return metadata.version("cublame")
    except metadata.PackageNotFoundError:
        return "0+unknown"
