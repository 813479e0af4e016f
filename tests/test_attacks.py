"""Whatever parses what a stranger sends, or listens, has a row in attacks.toml, and a test."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import reactive_aio

PACKAGE: Final = Path(reactive_aio.__file__).parent
ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("rsocket", "asgi", "observe", "spark/datasource")
"""Those that strangers reach."""
LISTENS: Final = frozenset(
    {"create_server", "create_unix_server", "create_tcp_listener", "create_unix_listener", "listen"}
)
PARSES: Final = frozenset(
    {"loads", "raw_decode", "unpack", "unpack_from", "iter_unpack", "from_bytes", "parse_qsl",
     "parse_qs", "b64decode", "fromhex", "decompress", "validate_json", "literal_eval"}
)  # fmt: skip
NO_STRANGER: Final = {
    "rsocket/uri.py": "reads the address that the user gives",
    "observe/command.py": "reads a report of the process that its user has named",
    "spark/datasource/_plugin.py": "runs in Spark's own workers, and reads options of the query",
}
ADD: Final = """\
{module} {does}, and no row of tests/attacks.toml says what that may cost. Add one, with the test
that sends the worst; or, if no stranger reaches it, add it to NO_STRANGER here, with the reason."""

with (Path(__file__).parent / "attacks.toml").open("rb") as _file:
    ATTACKS: Final = tomllib.load(_file)["attack"]


def calls(tree: ast.Module) -> Iterator[str]:
    """The last names of the functions that are called in *tree*."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node.func.id


def exposed() -> Iterator[tuple[str, str]]:
    """The modules that listen or parse, and the function by which they do."""
    for path in (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        found = (LISTENS | PARSES) & set(calls(ast.parse(path.read_text("utf-8"))))
        if found:
            yield str(path.relative_to(PACKAGE)), " and ".join(sorted(found))


def test_what_listens_or_parses_has_a_row() -> None:
    known = {each["module"] for each in ATTACKS} | NO_STRANGER.keys()
    missing = [
        ADD.format(module=module, does=f"calls {names}")
        for module, names in exposed()
        if module not in known
    ]
    assert not missing, "\n".join(missing)
    assert known == {module for module, _ in exposed()}, "a row of what is not there (any more)"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["module"])
def test_a_row_names_a_test_that_there_is(attack: dict[str, str]) -> None:
    file, _, function = attack["test"].partition("::")
    text = (ROOT / file).read_text("utf-8")
    assert f"def {function or 'test_'}" in text


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["module"])
def test_a_limit_that_a_user_sets_is_documented(attack: dict[str, str]) -> None:
    limit = attack["limit"]
    if re.fullmatch(r"(max_\w+|\w+_timeout|mode)", limit):
        pages = (path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
        assert any(re.search(rf"\b{limit}\b[=`*]", text) for text in pages)
