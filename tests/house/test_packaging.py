"""pyproject.toml matches the project."""

import re
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import reactive_aio
from tests.harness.one_run import in_one_run

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
GROUPS: dict[str, list[Any]] = PYPROJECT["dependency-groups"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def classified_pythons() -> list[str]:
    found = (re.fullmatch(r".* :: (3\.\d+)", line) for line in PROJECT["classifiers"])
    return [match[1] for match in found if match]


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = classified_pythons()[0]
    assert PROJECT["requires-python"] == f">={oldest}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PYPROJECT["tool"]["pyright"]["pythonVersion"] == oldest
    major, minor = oldest.split(".")
    assert f"OLDEST_PYTHON = ({major}, {minor})\n" in (ROOT / "noxfile.py").read_text("utf-8")


def test_the_classified_pythons_have_no_gap() -> None:
    minors = [int(version.partition(".")[2]) for version in classified_pythons()]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_the_documents_name_the_versions_that_are_required() -> None:
    oldest, *_, newest = classified_pythons()
    table = (ROOT / "docs" / "versioning.md").read_text("utf-8")
    assert f"at present {oldest} to {newest} |" in table
    assert f"\n{oldest} to {newest}." in (ROOT / "docs" / "faq.md").read_text("utf-8")
    [anyio], [pyspark] = (
        re.findall(rf"^{name}>=([\d.]+)$", "\n".join(lines), re.MULTILINE)
        for name, lines in [("anyio", PROJECT["dependencies"]), ("pyspark", EXTRAS["spark"])]
    )
    assert f"| anyio | {anyio} and newer |" in table
    assert f"| PySpark | {pyspark} and newer;" in table


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    assert reactive_aio.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {version}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [latest] = re.findall(r"^## (\d\S*)", changelog, re.MULTILINE)[:1]
    assert latest == version, "the first release in CHANGELOG.md"


def test_the_core_needs_anyio_only() -> None:
    assert names(PROJECT["dependencies"]) == {"anyio"}


def test_the_extra_all_and_the_group_dev_have_all_others() -> None:
    assert sorted(EXTRAS["all"][0][len("reactive-aio[") : -1].split(",")) == sorted(
        EXTRAS.keys() - {"all"}
    )
    assert {entry["include-group"] for entry in GROUPS["dev"]} == set(GROUPS) - {"dev"}


@in_one_run
@pytest.mark.parametrize(
    "requirement",
    [
        *PROJECT["dependencies"],
        *(line for extra in EXTRAS.values() for line in extra if "reactive-aio" not in line),
        *(line for group in GROUPS.values() for line in group if isinstance(line, str)),
    ],
)
def test_every_requirement_has_a_lower_bound_and_no_place(requirement: str) -> None:
    assert re.match(r"[\w.-]+(\[\w+\])?[>=]=\d", requirement)
    assert "@" not in requirement


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "reactive_aio" / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_pytest_finds_its_plugin() -> None:
    declared = PROJECT["entry-points"]["pytest11"]
    assert declared == {"reactive_aio": "reactive_aio.tck.pytest_plugin"}
    plugin = EntryPoint("reactive_aio", declared["reactive_aio"], "pytest11").load()
    assert callable(plugin.pytest_addoption)


def test_the_files_of_the_metadata_exist() -> None:
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    for name in ["README.md", hook["path"], *PROJECT["license-files"]]:
        assert (ROOT / name).is_file()
    assert set(PROJECT["dynamic"]) == {"readme", "urls"}, "what publishing/metadata.py sets"
