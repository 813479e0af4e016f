"""What is installed: versions, the extras of this package, and a Java for Spark."""

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Final

from .. import __version__

__all__ = ("extras", "java", "versions")

_NAME: Final = "reactive-aio"
_REQUIREMENT: Final = re.compile(
    r"""(?P<name>[\w.-]+) \s* (?:\[(?P<extras>[\w,\s-]*)\])? \s* (?P<bounds>[^;]*)
    (?: ; (?P<marker>.*) )?""",
    re.VERBOSE,
)
_OF_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_NOT_ON_WINDOWS: Final = re.compile(r"""sys_platform\s*!=\s*["']win32["']""")
_BOUND: Final = re.compile(r"(>=|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A line of the metadata of a package: what one of its extras requires."""

    name: str
    extras: tuple[str, ...]
    bounds: str

    def problem(self) -> str:
        """Why it is not met; empty if it is."""
        try:
            found = version(self.name)
        except PackageNotFoundError:
            return f"{self.name} is missing"
        for sign, bound in _BOUND.findall(self.bounds):
            is_below = _release(found) < _release(bound)
            if is_below == (sign == ">="):
                return f"{self.name} {found} is installed, {self.bounds} is needed"
        problems = (each.problem() for extra in self.extras for each in _of_extra(self.name, extra))
        return next(filter(None, problems), "")


def versions() -> Iterator[str]:
    """The versions of the package, of Python and of anyio, a line each."""
    yield f"reactive_aio {__version__} ({Path(__file__).parents[1]})"
    implementation = f"{platform.python_implementation()} {platform.python_version()}"
    yield f"{implementation}, {platform.platform()}"
    yield f"anyio {version('anyio')}"
    if is_free_threaded():
        yield (
            "without the GIL, which is not supported: a request() from another thread could be "
            "lost; start Python with PYTHON_GIL=1"
        )


def extras() -> Iterator[str]:
    """A line for each extra: its packages, or what is missing and the command that installs it."""
    try:
        names = metadata(_NAME).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        yield f"unknown: {_NAME} is imported from a folder, and is not installed"
        return
    for extra in sorted({*names} - {"all"}):
        requirements = [*_of_extra(_NAME, extra)]
        if not requirements:
            yield f"{extra}: not available on this system"
        elif problem := next(filter(None, (each.problem() for each in requirements)), ""):
            yield f"{extra}: not installed ({problem}): pip install '{_NAME}[{extra}]'"
        else:
            found = dict.fromkeys(f"{each.name} {version(each.name)}" for each in requirements)
            yield f"{extra}: {', '.join(found)}"


def java() -> str:
    """The Java that Spark would start, or why there is none. Takes a fraction of a second."""
    try:
        version("pyspark")
    except PackageNotFoundError:
        return "not needed, as PySpark is not installed"
    # Without Spark, its room is not imported.
    from ..spark.java import JavaNotFound, find_java

    try:
        return str(find_java())
    except JavaNotFound as error:
        return str(error)


def _of_extra(package: str, extra: str) -> Iterator[_Requirement]:
    """What *extra* of *package* requires on this system, with that of the extras that it names."""
    for line in requires(package) or []:
        found = _REQUIREMENT.match(line)
        if found is None or extra not in _OF_EXTRA.findall(found["marker"] or ""):
            continue
        if sys.platform == "win32" and _NOT_ON_WINDOWS.search(line):
            continue
        named = tuple(re.findall(r"[\w-]+", found["extras"] or ""))
        if found["name"] == package:
            for other in named:
                yield from _of_extra(package, other)
        else:
            yield _Requirement(found["name"], named, found["bounds"].strip(" ()"))


def _release(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version: (4, 1) for 4.1.0.dev3."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(each) for each in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_free_threaded() -> bool:
    """Whether threads run at the same time, since this build has no GIL and none was enabled."""
    has_gil: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return not has_gil
