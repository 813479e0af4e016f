"""Everything the project does by command: checks, tests, the demo, examples, benchmarks.

    python3 noxfile.py -s tests           on a machine with nothing but Python
    nox -s tests -- -k virtual_time       with nox; what follows `--` goes to the tool
    nox                                   what CI runs

Run as a script, this file finds nox or installs it into `.venv/`, and starts it. Its first part
therefore avoids syntax younger than Python 3.6, so that an old Python gets an answer and not a
SyntaxError.
"""

import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOWS = os.name == "nt"
OLDEST_PYTHON = (3, 11)
OLDEST_NOX = (2025, 5, 1)
# The Python that runs this script is the one under test, wherever nox itself lives.
PYTHON_VARIABLE = "REACTIVE_AIO_PYTHON"

# --- finding nox, or getting it ---------------------------------------------------------------


def start_nox(arguments: "list[str]") -> int:
    """Run nox with *arguments*, from this Python if it has nox, else from `.venv/`."""
    problem = python_problem(sys.version_info[:2])
    if problem:
        return give_up(problem)
    python = sys.executable
    if not has_nox(python):
        python = in_environment(os.path.join(HERE, ".venv"), "python")
        if not has_nox(python):
            problem = install_nox(python)
            if problem:
                return give_up(problem)
    os.environ.setdefault(PYTHON_VARIABLE, sys.executable)
    command = [python, "-m", "nox", "-f", os.path.join(HERE, "noxfile.py"), *arguments]
    if not WINDOWS:
        # Taking this process's place leaves one process less between Ctrl-C and the session.
        os.execv(python, command)
    return subprocess.call(command)


def python_problem(version: "tuple[int, int]") -> str:
    if version >= OLDEST_PYTHON:
        return ""
    needed, found = ("{}.{}".format(*pair) for pair in (OLDEST_PYTHON, version))
    return f"Python {needed} or newer is needed; this is {found} ({sys.executable})"


def venv_problem() -> str:
    from importlib.util import find_spec

    missing = [name for name in ("venv", "ensurepip") if find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"this Python ({sys.executable}) cannot make virtual environments:"
        f" it lacks the module {' and '.join(missing)}.\n"
        "On Debian and Ubuntu: apt install python3-venv. Or run this file with another Python."
    )


def has_nox(python: str) -> bool:
    """Whether *python* exists, works, is young enough, and has a nox that is."""
    if not os.path.exists(python):
        return False
    code = (
        "import sys, importlib.metadata as m; import nox; "
        "v = tuple(int(n) for n in m.version('nox').split('.')[:3]); "
        f"sys.exit(not (v >= {OLDEST_NOX} and sys.version_info >= {OLDEST_PYTHON}))"
    )
    return subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0


def install_nox(python: str) -> str:
    """Make `.venv/` unless there is one that works, and nox in it; return what is wrong, if so."""
    place = os.path.join(HERE, ".venv")
    if not runs(python):
        problem = venv_problem()
        if problem:
            return problem
        print("making .venv/ for nox", flush=True)
        if subprocess.call([sys.executable, "-m", "venv", "--clear", place]) != 0:
            return "could not make .venv/ (see above)"
    print("installing nox into .venv/", flush=True)
    nox = "nox>={}.{}.{}".format(*OLDEST_NOX)
    if subprocess.call([python, "-m", "pip", "install", "--quiet", nox]) != 0 or not has_nox(
        python
    ):
        return "could not install nox into .venv/ (see above)"
    return ""


def runs(python: str) -> bool:
    code = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return os.path.exists(python) and subprocess.call([python, "-c", code]) == 0


def in_environment(place: str, program: str) -> str:
    if WINDOWS:
        return os.path.join(place, "Scripts", program + ".exe")
    return os.path.join(place, "bin", program)


def give_up(problem: str) -> int:
    print("noxfile.py: " + problem, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(start_nox(sys.argv[1:]))

# --- the sessions -----------------------------------------------------------------------------
# From here on nox runs this file, with a Python that is young enough.

from pathlib import Path

import nox
import nox.command
import nox.project

ROOT = Path(HERE)
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")

# Every session starts many Pythons, and pytest rewrites what it imports: without files of bytecode,
# each of them would compile all of it again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

nox.needs_version = ">={}.{}.{}".format(*OLDEST_NOX)
nox.options.sessions = ["lint", "types", "layers", "tests"]

PROJECT: str = PYPROJECT["project"]["name"]
PACKAGE = PROJECT.replace("-", "_")

# Tests of one group share a worker: see tests/harness/groups.py. Two more workers than cores, since
# tests wait: for Spark, for other processes, for silence.
ALL_CORES = ("-n", str((os.cpu_count() or 1) + 2), "--dist", "loadfile")

# What the docstring of an example says that does not end by itself.
SERVES = "Serve until Ctrl-C."

# A person may stop the demo with Ctrl-C: it then cancels its Spark job and closes its database.
TIME_TO_STOP = 30


# A dozen programs of the tests start Spark; with the archive, each in about half of the time.
ARCHIVE_CLASSES = """
from reactive_aio.spark import ArchiveUnavailable, archive_classes
try:
    print("the archive of the classes of Spark's JVM:", archive_classes(), flush=True)
except ArchiveUnavailable as error:
    print("Spark starts without an archive of its classes:", error, flush=True)
"""


class Room:
    """One environment, shared by the sessions that name it.

    nox would make one for each session. Spark alone fills half a gigabyte, so the sessions that
    need it share one, and each adds what it needs on top.
    """

    def __init__(self, session: nox.Session, name: str, base: str = "") -> None:
        self.session = session
        base = base or os.environ.get(PYTHON_VARIABLE, sys.executable)
        ask = "import sys; print('{}.{}'.format(*sys.version_info))"
        version = subprocess.run([base, "-c", ask], capture_output=True, text=True, check=True)
        self.place = ROOT / ".nox" / f"{name}-{version.stdout.strip()}"
        self.python = in_environment(str(self.place), "python")
        if not runs(self.python):
            session.run(
                sys.executable,
                "-m",
                "virtualenv",
                "--quiet",
                "--clear",
                "--python",
                base,
                str(self.place),
                external=True,
            )

    def install(self, *groups: str, extras: str = "") -> "Room":
        """Install dependency groups, and the project itself if *extras* are named."""
        project = [f"{PROJECT}[{extras}]"] if extras else []
        return self.require([*nox.project.dependency_groups(PYPROJECT, *groups), *project])

    def require(self, needs: "list[str]") -> "Room":
        """Install *needs*; the project itself is installed from this clone."""
        wanted: list[str] = []
        for need in needs:
            ours = need.startswith(PROJECT)
            wanted += ["-e", "." + need.removeprefix(PROJECT)] if ours else [need]
        # pip takes seconds to find that nothing is to be done; this takes none, and no network.
        fingerprint = hashlib.sha256(repr((wanted, PYPROJECT)).encode()).hexdigest()[:16]
        mark = self.place / f"installed-{fingerprint}"
        if not mark.exists():
            self.run("pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
            mark.touch()
        return self

    def archive_classes(self) -> "Room":
        """Archive the classes of Spark's JVM, unless that has been done."""
        self.session.run(self.python, "-W", "ignore", "-c", ARCHIVE_CLASSES, external=True)
        return self

    def run(self, module: str, *arguments: str) -> None:
        self.session.run(self.python, "-m", module, *arguments, external=True)

    def run_all(self, *commands: list[str]) -> None:
        """Run each, even if one before it failed: every failure is shown at once."""
        failed: list[str] = []
        for command in commands:
            try:
                self.run(*command)
            except nox.command.CommandFailed:
                failed.append(" ".join(command[:2]))
        if failed:
            self.session.error(f"failed: {', '.join(failed)}")

    def program(self, name: str, *arguments: str) -> None:
        self.session.run(in_environment(str(self.place), name), *arguments, external=True)

    def script(self, path: Path, *arguments: str) -> None:
        self.session.run(
            self.python,
            str(path.relative_to(ROOT)),
            *arguments,
            external=True,
            interrupt_timeout=TIME_TO_STOP,
            terminate_timeout=TIME_TO_STOP,
        )


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Ruff: rules and formatting. `-- --fix` repairs what can be."""
    room = Room(session, "checks").install("lint")
    only_check = [] if "--fix" in session.posargs else ["--check"]
    room.run_all(["ruff", "check", *session.posargs], ["ruff", "format", *only_check])


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """mypy, strict, on all files; pyright where it sees what mypy does not.

    That is how the types of flows are inferred (`tests/typing`), and whether each public name has
    one. mypy keeps what it has found, so the second run takes seconds. `pyright` checks all files.
    """
    room = typed_room(session)
    room.run_all(
        ["mypy", *session.posargs],
        ["pyright", "--pythonpath", room.python, "tests/typing"],
        ["pyright", "--pythonpath", room.python, "--verifytypes", PACKAGE, "--ignoreexternal"],
    )


@nox.session(venv_backend="none", default=False)
def pyright(session: nox.Session) -> None:
    """pyright, strict, on all files, as CI does; `-- FILE` on some of them."""
    room = typed_room(session)
    room.run("pyright", "--pythonpath", room.python, *session.posargs)


def typed_room(session: nox.Session) -> Room:
    room = Room(session, "work").install("types", "test", "demo", "docs", extras="all")
    # --verifytypes looks for an installed package, and overlooks one installed as editable. What
    # ours imports it looks for with the `python` of the path, whatever --pythonpath says.
    session.env["PYTHONPATH"] = HERE
    session.env["PATH"] = os.pathsep.join([os.path.dirname(room.python), os.environ["PATH"]])
    return room


@nox.session(venv_backend="none")
def layers(session: nox.Session) -> None:
    """Check which module may import which."""
    room = Room(session, "checks").install("layers")
    room.program("lint-imports", "--no-cache", *session.posargs)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """pytest on all cores. `-- -k name` runs some of the tests, `-- -n0` in one process."""
    room = Room(session, "work").install("test", "demo", extras="all")
    if not session.posargs:
        room.archive_classes()
    room.run("pytest", *ALL_CORES, *session.posargs)


@nox.session(venv_backend="none", default=False)
def quick(session: nox.Session) -> None:
    """The tests of two to three minutes: one loop, small budgets, no Spark, no other processes."""
    room = Room(session, "work").install("test", "demo", extras="all")
    room.run("pytest", *ALL_CORES, "--quick", *session.posargs)


@nox.session(venv_backend="none", default=False)
def thorough(session: nox.Session) -> None:
    """Every test on every loop with full budgets; then fuzz and guards. It needs a quiet machine.

    With arguments after `--`, only the tests that they select.
    """
    room = Room(session, "work").install("test", "fuzz", "demo", "docs", extras="all")
    if session.posargs:
        room.run("pytest", "--thorough", *session.posargs)
        return
    room.run_all(
        ["pytest", *ALL_CORES, "--thorough", "-m", "not thorough"],
        ["pytest", "--thorough", "-m", "thorough"],
        ["tests.rsocket.fuzz"],
        ["tests.guards.prove"],
        ["tests.guards.prove", "--sample", "300"],
    )
    test_pythons(session)
    test_sparks(session, *SPARKS)


@nox.session(venv_backend="none", default=False)
def pythons(session: nox.Session) -> None:
    """The tests of `quick` on each supported Python that this machine has. `-- -k name`: some."""
    test_pythons(session, *session.posargs)


def test_pythons(session: nox.Session, *arguments: str) -> None:
    """Test in an environment of its own for each; the interpreters are those of a release."""
    sys.path.insert(0, HERE)
    from publishing.interpreters import find

    prefix = "Programming Language :: Python :: 3."
    classifiers: list[str] = PYPROJECT["project"]["classifiers"]
    versions = ["3." + each.removeprefix(prefix) for each in classifiers if each.startswith(prefix)]
    failed: list[str] = []
    for interpreter in find(versions):
        room = Room(session, "work", str(interpreter.path))
        room.install("test", "demo", extras="all")
        try:
            room.run("pytest", *ALL_CORES, "--quick", *arguments)
        except nox.command.CommandFailed:
            failed.append(str(interpreter))
    if failed:
        session.error(f"failed: {', '.join(failed)}")


# Versions of Spark, of which the last release is tested, and the newest packages that they support.
SPARKS = {
    "3.5": ["pandas<3", "pyarrow<26"],  # it needs NumPy 1
    "4.0": ["pandas<3"],
    "4.1": ["pandas<3"],
    "4.2": ["pandas<3"],
    "4.3": [],
}


@nox.session(venv_backend="none", default=False)
def spark_matrix(session: nox.Session) -> None:
    """What works with which version of Spark: the table in docs/spark.md. `-- 3.5 4.0`: these."""
    test_sparks(session, *(session.posargs or SPARKS))


def test_sparks(session: nox.Session, *versions: str) -> None:
    """Test each version in an environment of its own, of half a gigabyte."""
    unknown = [version for version in versions if version not in SPARKS]
    if unknown:
        session.error(f"unknown version: {', '.join(unknown)}; tested are {', '.join(SPARKS)}")
    failed: list[str] = []
    for version in versions:
        room = Room(session, f"spark-{version}").install("test", extras="connect,uvloop")
        room.require([f"pyspark[connect]=={version}.*", *SPARKS[version]])
        try:
            room.run("pytest", "--thorough", "tests/spark/test_every_version.py")
        except nox.command.CommandFailed:
            failed.append(version)
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session(venv_backend="none", default=False)
def demo(session: nox.Session) -> None:
    """The main job: flights from Spark into a database. `-- --help` lists its options."""
    run_example(session, ROOT / "examples" / "flights_ingest.py", *session.posargs)


@nox.session(venv_backend="none", default=False)
def examples(session: nox.Session) -> None:
    """Every example that ends by itself; or those named after `--`."""
    programs = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
    programs = {name: path for name, path in programs.items() if needs_of(path) is not None}
    named = [argument.removesuffix(".py") for argument in session.posargs]
    unknown = [name for name in named if name not in programs]
    if unknown:
        session.error(
            f"unknown example: {', '.join(unknown)}; the examples are {', '.join(programs)}"
        )
    for name, path in programs.items():
        if name in named or not (named or SERVES in path.read_text("utf-8")):
            run_example(session, path)


def run_example(session: nox.Session, path: Path, *arguments: str) -> None:
    """Run the program at *path* with what it needs, and nothing else.

    What needs Spark shares the room of the tests.
    """
    needs = needs_of(path) or []
    name = "work" if any("spark" in need for need in needs) else "examples"
    Room(session, name).require(needs).script(path, *arguments)


def needs_of(path: Path) -> "list[str] | None":
    """The dependencies that the program at *path* declares; None for a part of a program."""
    script = nox.project.load_toml(path, missing_ok=True)
    return script.get("dependencies")


@nox.session(venv_backend="none", default=False)
def docs(session: nox.Session) -> None:
    """The site, into build/site; a warning is an error. `-- serve` shows it while you write."""
    room = Room(session, "docs").install("docs")
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    room.run("mkdocs", *(session.posargs or ["build"]))


@nox.session(venv_backend="none", default=False)
def build(session: nox.Session) -> None:
    """Wheel and sdist, checked, and tried on each Python found. `-- --help`: its options."""
    room = Room(session, "release").install("release")
    room.run("publishing.release", *session.posargs)


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """What each way costs, as a ratio to hand-written code. `-- --quick` runs each case once."""
    room = Room(session, "work").install("bench", extras="uvloop")
    room.run("benchmarks", *session.posargs)


@nox.session(venv_backend="none", default=False)
def fuzz(session: nox.Session) -> None:
    """Any bytes a peer may send, guided by coverage. `-- seconds seed`; a minute by default."""
    room = Room(session, "work").install("test", "fuzz", "demo", extras="all")
    room.run("tests.rsocket.fuzz", *session.posargs)


@nox.session(venv_backend="none", default=False)
def guards(session: nox.Session) -> None:
    """Take each guard of the contract away once, see which test notices, write docs/guards.md."""
    room = Room(session, "work").install("test", "demo", extras="all")
    room.run("tests.guards.prove", *session.posargs)


@nox.session(venv_backend="none", default=False)
def scoreboard(session: nox.Session) -> None:
    """Judge this library and others by the conformance kit; the table in docs/conformance.md."""
    room = Room(session, "work").install("scoreboard", extras="uvloop")
    room.run("tests.tck.scoreboard", *session.posargs)
