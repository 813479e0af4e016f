"""The files for GitHub say what is true of the project."""

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
FILES = sorted(GITHUB.rglob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SUPPORTED = [
    found[1]
    for each in PROJECT["classifiers"]
    if (found := re.fullmatch(r".* :: (3\.\d+)", each)) is not None
]
SESSIONS = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text("utf-8"), re.M))


def content(name: str) -> Any:
    return yaml.safe_load((GITHUB / name).read_text("utf-8"))


def commands(workflow: Any) -> list[str]:
    jobs: list[Any] = list(workflow["jobs"].values())
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_can_be_read(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text("utf-8")), dict)


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_workflows_run_sessions_that_there_are(name: str) -> None:
    run = [each for each in commands(content(f"workflows/{name}")) if "noxfile.py" in each]
    named = {each for line in run for each in line.partition(" -s ")[2].partition(" --")[0].split()}
    assert run
    assert named <= SESSIONS


def test_each_supported_python_is_tested_on_linux_and_the_ends_elsewhere() -> None:
    jobs = content("workflows/ci.yml")["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == SUPPORTED
    others = jobs["others"]["strategy"]["matrix"]
    assert others["python"] == [SUPPORTED[0], SUPPORTED[-1]]
    assert others["system"] == ["macos-latest", "windows-latest"]


def test_a_release_is_published_without_a_password() -> None:
    release = content("workflows/release.yml")
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert "secrets." not in (GITHUB / "workflows/release.yml").read_text("utf-8")
    setup = next(each for each in release["jobs"]["build"]["steps"] if "with" in each)
    assert sorted(setup["with"]["python-version"].split()) == SUPPORTED


def test_forms_have_the_parts_that_github_requires() -> None:
    for name in ("bug.yml", "idea.yml"):
        form = content(f"ISSUE_TEMPLATE/{name}")
        assert {"name", "description", "body"} <= form.keys()
        fields = cast("list[Any]", form["body"])
        assert len({each["id"] for each in fields}) == len(fields)
