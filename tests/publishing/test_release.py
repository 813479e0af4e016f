"""The parts of the release: content, interpreters, programs, and what is missing before it."""

import sys
import zipfile
from pathlib import Path

import pytest

from publishing import release
from publishing.contents import missing_from, sizes, strangers_in
from publishing.interpreters import find
from publishing.programs import Program, programs
from publishing.project import ROOT

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


# -- the content of a wheel ------------------------------------------------------------------------
@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a module and a script, and what an import has left behind."""
    for name in ("__init__.py", "asgi/page.js", "__pycache__/x.pyc"):
        path = tmp_path / "reactive_aio" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def wheel(root: Path, *names: str) -> Path:
    path = root / "x.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * len(name))
    return path


def test_a_file_that_a_wheel_lacks_or_that_is_strange_is_named(package: Path) -> None:
    names = ["reactive_aio/__init__.py", "reactive_aio/asgi/page.js", "x-1.dist-info/METADATA"]
    complete = wheel(package, *names)
    assert (missing_from(complete, package), strangers_in(complete, package)) == ([], [])
    made = wheel(package, "reactive_aio/__init__.py", "tests/test_x.py")
    assert missing_from(made, package) == ["reactive_aio/asgi/page.js"]
    assert strangers_in(made, package) == ["tests/test_x.py"]


def test_sizes_are_those_of_the_rooms(package: Path) -> None:
    made = wheel(package, "p/a/x.py", "p/a/yy.py", "p/b/z.py", "p/top.py", "p-1.dist-info/LICENSE")
    assert sizes(made) == [("p-1.dist-info", 21), ("p/a", 17), ("p/b", 8), ("p", 8)]


# -- interpreters ----------------------------------------------------------------------------------
@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in PATH, and nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def place(folder: Path, name: str, program: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return path


def test_interpreters_are_found_in_path_and_among_those_of_pyenv(machine: Path) -> None:
    place(machine, "python3.98", "echo 3.98 3.98.1")
    place(machine / "pyenv/versions/3.99.0t/bin", "python3.99t", "echo 3.99 3.99.0t")
    found = find(["3.97", "3.98", "3.99"])
    assert [str(each) for each in found] == ["Python 3.98.1", "Python 3.99.0t"]
    assert [each.version for each in found] == ["3.98", "3.99"]


def test_a_shim_that_does_not_run_is_passed_over(machine: Path) -> None:
    place(machine, "python3.98", "echo 'version 3.98 is not selected' >&2; exit 127")
    place(machine / "pyenv/versions/3.98.2/bin", "python3.98", "echo 3.98 3.98.2")
    [found] = find(["3.98"])
    assert found.name == "3.98.2"


def test_this_interpreter_is_found_by_its_path_once(machine: Path) -> None:
    place(machine, f"python{HERE}", f'exec "{sys.executable}" "$@"')
    [found] = find([HERE], [Path(sys.executable)])
    assert found.version == HERE


def test_a_path_that_is_not_a_python_is_refused(machine: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a Python that runs"):
        find([], [place(machine, "other", "exit 1")])


# -- programs --------------------------------------------------------------------------------------
def test_programs_with_outputs_are_found(tmp_path: Path) -> None:
    text = "# A\n\n```python\nx = 1\n```\n\nand\n\n```python\nprint(2)\n```\n\n```output\n2\n```\n"
    (tmp_path / "a.md").write_text(text, "utf-8")
    assert programs(tmp_path) == [Program("a.md:9", "print(2)\n", "2\n")]


def test_each_step_of_the_tutorial_has_a_program() -> None:
    steps = {each.name.partition(":")[0] for each in programs(ROOT / "docs" / "tutorial")}
    assert [step[0] for step in sorted(steps)] == [*"123456"]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print(2)", ""),
        ("print(3)", "it printed\n3\n\ninstead of\n2\n"),
        ("1 // 0", "exit status 1\nTraceback"),
    ],
)
def test_a_program_is_judged_by_what_it_prints(code: str, problem: str, tmp_path: Path) -> None:
    found = Program("a.md:1", code, "2\n").problem(Path(sys.executable), tmp_path)
    assert found.startswith(problem) if problem else not found


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "program", programs(ROOT / "docs" / "tutorial"), ids=lambda each: each.name
)
def test_a_reader_of_the_tutorial_sees_what_it_shows(program: Program, tmp_path: Path) -> None:
    assert program.problem(Path(sys.executable), tmp_path) == ""


# -- before publishing -----------------------------------------------------------------------------
def test_supported_versions_are_those_of_the_classifiers() -> None:
    assert {"3.11", HERE} <= release.supported()
    assert all(version.startswith("3.") for version in release.supported())


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def publication() -> dict[str, str]:
        return {"repository": "", "branch": "main", "documentation": ""}

    monkeypatch.setattr(release, "publication", publication)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("## 0.1.0 (not yet published)\n")
    address, date = release.before_publishing()
    assert "set the repository's address" in address
    assert "'## 0.1.0 - YYYY-MM-DD'" in date
    changelog.write_text("## 0.1.0 - 2031-02-03\n")
    assert [*release.before_publishing()] == [address]
