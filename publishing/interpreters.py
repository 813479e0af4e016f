"""The interpreters of this machine on which a release is tried."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ("Interpreter", "find")

_PROBE: Final = """
import platform, sys, sysconfig
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print("{}.{}".format(*sys.version_info[:2]), platform.python_version() + free)
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that runs."""

    path: Path
    version: str
    """Such as 3.13, also of a free-threaded build."""
    name: str
    """Such as 3.13.0, or 3.13.0t."""

    def __str__(self) -> str:
        return f"Python {self.name}"


def find(versions: Iterable[str], further: Iterable[Path] = ()) -> list[Interpreter]:
    """One interpreter for each of *versions* and each free-threaded build, and *further* ones.

    They are searched for in PATH and among those of pyenv. A name in PATH that does not run, such
    as a shim of pyenv for a version that is not selected, is passed over.
    """
    found: dict[str, Interpreter] = {}
    wanted = [(version, name) for version in versions for name in (version, f"{version}t")]
    for version, name in wanted:
        for path in _candidates(name):
            interpreter = _probe(path)
            if interpreter and interpreter.version == version:
                found.setdefault(name, interpreter)
    for path in further:
        interpreter = _probe(path)
        if interpreter is None:
            raise FileNotFoundError(f"{path} is not a Python that runs")
        found.setdefault(str(path), interpreter)
    return sorted({each.name: each for each in found.values()}.values(), key=_order)


def _candidates(name: str) -> Iterator[Path]:
    if path := shutil.which(f"python{name}"):
        yield Path(path)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob(f"versions/*/bin/python{name}"), reverse=True)


def _probe(path: Path) -> Interpreter | None:
    try:
        answer = subprocess.run(
            [path, "-I", "-c", _PROBE], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version, name = answer.stdout.split()
    return Interpreter(path, version, name)


def _order(interpreter: Interpreter) -> tuple[int, str]:
    return int(interpreter.version.partition(".")[2]), interpreter.name
