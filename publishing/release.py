"""Builds the package, checks it, and tries it on each Python that is found.

    python -m publishing.release             # into build/release
    python -m publishing.release --complete  # fails unless each supported Python was tried

It makes the sdist and, from it, the wheel; checks the metadata, the content and the size; installs
the wheel alone into new environments, and runs the self-test and the tutorial there; writes a list
of components (SBOM); and says what is missing before the release can be published.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from publishing.contents import missing_from, sizes, strangers_in
from publishing.interpreters import Interpreter, find
from publishing.programs import Program, programs
from publishing.project import ROOT, project, publication

PLACE: Final = ROOT / "build" / "release"
LARGEST_WHEEL: Final = 1_000_000
"""Bytes. The core is downloaded by each build of each user."""


class Failed(Exception):
    """The release cannot be made; the message says why."""


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m publishing.release", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--complete", action="store_true", help="fail unless each supported Python was tried"
    )
    parser.add_argument("--python", action="append", default=[], help="try this interpreter, too")
    options = parser.parse_args()
    try:
        wheel, sdist = build()
        check(wheel, sdist)
        tried = try_on_each([Path(each) for each in options.python], wheel)
        if options.complete and (missing := sorted(supported() - tried)):
            raise Failed(f"not tried, since they were not found: Python {', '.join(missing)}")
    except (Failed, subprocess.CalledProcessError) as error:
        say(f"FAILED: {error}")
        return 1
    for line in before_publishing():
        say(f"before publishing: {line}")
    return 0


# -- the files -------------------------------------------------------------------------------------
def build() -> tuple[Path, Path]:
    """The wheel and the sdist, newly made."""
    shutil.rmtree(PLACE, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", PLACE, ROOT)
    [wheel], [sdist] = PLACE.glob("*.whl"), PLACE.glob("*.tar.gz")
    return wheel, sdist


def check(wheel: Path, sdist: Path) -> None:
    """Check metadata, content and size."""
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    if lost := missing_from(wheel):
        raise Failed(f"{wheel.name} lacks {', '.join(lost)}")
    if strangers := strangers_in(wheel):
        raise Failed(f"{wheel.name} has what does not belong in it: {', '.join(strangers)}")
    size = wheel.stat().st_size
    say(f"{wheel.name}: {size:,} bytes, {sdist.name}: {sdist.stat().st_size:,} bytes")
    for name, part in sizes(wheel)[:8]:
        say(f"  {part:>9,}  {name}")
    if size > LARGEST_WHEEL:
        raise Failed(f"{wheel.name} has more than {LARGEST_WHEEL:,} bytes")


# -- trying it -------------------------------------------------------------------------------------
def try_on_each(further: list[Path], wheel: Path) -> set[str]:
    """Try the wheel on each interpreter; return the supported versions that were tried."""
    tutorial = programs(ROOT / "docs" / "tutorial")
    interpreters = find(supported(), further)
    for interpreter in interpreters:
        try_on(interpreter, wheel, tutorial)
    versions = {each.version for each in interpreters}
    say(f"tried on: {', '.join(map(str, interpreters)) or 'none'}")
    if missing := sorted(supported() - versions):
        say(f"not found, and not tried: Python {', '.join(missing)}")
    return versions


def try_on(interpreter: Interpreter, wheel: Path, tutorial: list[Program]) -> None:
    """Install *wheel* into a new environment, and run the self-test and the tutorial."""
    place = PLACE / "environments" / interpreter.name
    run(interpreter.path, "-m", "venv", place)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    # Away from the repository, so that only the installed package can be imported.
    run(python, "-I", "-X", "dev", "-W", "error", "-m", "reactive_aio", folder=place)
    for program in tutorial:
        if problem := program.problem(python, place):
            raise Failed(f"{interpreter}: {program.name}: {problem}")
    say(f"{interpreter}: {len(tutorial)} programs of the tutorial print what it says")
    if interpreter.version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        write_components(python)


def write_components(python: Path) -> None:
    """Write the SBOM: the package and what it is installed with, as CycloneDX."""
    path = PLACE / f"{project()['name']}-{project()['version']}.cdx.json"
    command = ["-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
    pyproject = ["--pyproject", str(ROOT / "pyproject.toml")]
    run(sys.executable, *command, *pyproject, "--output-file", path, python)
    say(f"components: {path.relative_to(ROOT)}")


# -- the rest --------------------------------------------------------------------------------------
def supported() -> set[str]:
    """The versions of Python that the classifiers name."""
    prefix = "Programming Language :: Python :: 3."
    classifiers: list[str] = project()["classifiers"]
    return {f"3.{each.removeprefix(prefix)}" for each in classifiers if each.startswith(prefix)}


def before_publishing() -> Iterator[str]:
    """What has to be done before this version can be published."""
    if not publication()["repository"]:
        yield "set the repository's address in pyproject.toml ([tool.hatch.metadata.hooks.custom])"
    version = project()["version"]
    if f"## {version} - 20" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        yield f"give the heading of {version} in CHANGELOG.md its date: '## {version} - YYYY-MM-DD'"


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command; what it prints is shown."""
    subprocess.run([*map(str, command)], cwd=folder, check=True)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
