"""The words of the house: banned turns and names, each with what to write instead.

`words.toml` lists them. They are searched for in sources, tests, documents and file names; each
finding is reported with its file, its line and the plain wording. To see those of one room::

    python -m tests.house.test_words reactive_aio/rsocket docs/rsocket.md
"""

import bisect
import io
import re
import string
import sys
import tokenize
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DATA: Final = Path(__file__).with_name("words.toml")
THIS_FILE: Final = "tests/house/test_words.py"
"""Its tests need banned words."""
PLACES: Final = ("benchmarks", "docs", "examples", "publishing", "reactive_aio", "tests")
SUFFIXES: Final = {".py", ".pyi", ".md", ".js", ".cjs", ".mjs"}
LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
STRINGS: Final = {"STRING", "FSTRING_MIDDLE"}


@dataclass(frozen=True)
class Rule:
    """One entry of `words.toml`."""

    kind: str
    """``turn``, ``name`` or ``attribute``."""
    pattern: str
    instead: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    allow: str = ""
    only: tuple[str, ...] = ("",)
    exempt: tuple[str, ...] = ()

    @classmethod
    def parse(cls, entry: dict[str, Any]) -> "Rule":
        [kind] = {"turn", "name", "attribute"} & entry.keys()
        return cls(
            kind,
            entry[kind],
            entry["instead"],
            tuple(entry["bad"]),
            tuple(entry["good"]),
            entry.get("allow", ""),
            tuple(entry.get("only", [""])),
            tuple(entry.get("except", [])),
        )

    def covers(self, path: str) -> bool:
        return path.startswith(self.only) and not path.startswith(self.exempt)


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}; write: {self.instead}"


RULES: Final = tuple(Rule.parse(entry) for entry in tomllib.loads(DATA.read_text("utf-8"))["rule"])


class Checker:
    """Finds what some rules ban. One regular expression per kind of text keeps it fast."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = {f"r{number}": rule for number, rule in enumerate(rules)}
        turns = {key: rule for key, rule in self._rules.items() if rule.kind == "turn"}
        allowed = [_spaced(rule.allow) for rule in turns.values() if rule.allow]
        banned = [f"(?P<{key}>{_spaced(rule.pattern)})" for key, rule in turns.items()]
        self._turns = _words("|".join([*allowed, *banned]))
        names = [
            f"(?P<{key}>{r'(?<=[.])' if rule.kind == 'attribute' else ''}(?:{rule.pattern}))"
            for key, rule in self._rules.items()
            if rule.kind != "turn"
        ]
        self._names = re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)") if names else None

    def check(self, path: str, text: str) -> list[Finding]:
        """The findings in a file: in its path, its prose and its names."""
        found = [(0, match) for match in self._turns.finditer(path) if match.lastgroup]
        # In lower case, as ignoring the case takes twice the time.
        lower = text.translate(LOWER)
        in_text = [match for match in self._turns.finditer(lower) if match.lastgroup]
        names = [*self._names.finditer(text)] if self._names and path.endswith(".py") else []
        if path.endswith(".py") and (in_text or names):
            tokens = _Tokens(text)
            in_text = [match for match in in_text if tokens.has_prose(match.span())]
            names = [match for match in names if tokens.has_name(match.start())]
        found += [(_line(text, match), match) for match in [*in_text, *names]]
        return [
            Finding(path, line, " ".join(match.group().split()), rule.instead)
            for line, match in found
            if (rule := self._rules[match.lastgroup or ""]).covers(path)
        ]


class _Tokens:
    """Where the strings, comments and identifiers of a module are."""

    def __init__(self, text: str) -> None:
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._prose: list[tuple[int, int]] = []
        self._names: list[tuple[int, int]] = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = tokenize.tok_name[token.type]
            start = starts[token.start[0] - 1] + token.start[1]
            end = starts[token.end[0] - 1] + token.end[1]
            if kind == "NAME":
                self._names.append((start, end))
            elif kind in STRINGS:
                self._prose.append((start, end))
            elif kind == "COMMENT":
                # Comments on consecutive lines are one text.
                if self._prose and not text[self._prose[-1][1] : start].strip():
                    start = self._prose.pop()[0]
                self._prose.append((start, end))

    def has_prose(self, span: tuple[int, int]) -> bool:
        """Whether *span* lies in one string, one comment or one identifier."""
        return _within(span, self._prose) or _within(span, self._names)

    def has_name(self, start: int) -> bool:
        return _within((start, start + 1), self._names)


def _within(span: tuple[int, int], places: list[tuple[int, int]]) -> bool:
    at = bisect.bisect_right(places, (span[0], sys.maxsize)) - 1
    return at >= 0 and span[1] <= places[at][1]


def _spaced(pattern: str) -> str:
    return pattern.replace(" ", r"[\s#_]+")


def _words(pattern: str) -> re.Pattern[str]:
    """*pattern* between the bounds of words, where ``_`` separates words too."""
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def is_ours(path: Path) -> bool:
    return path.suffix in SUFFIXES and not {"node_modules", "dist"}.intersection(path.parts)


def files(prefixes: tuple[str, ...]) -> list[str]:
    """The sources and documents whose paths begin with one of *prefixes*."""
    found = [*ROOT.glob("*.*"), *(path for place in PLACES for path in (ROOT / place).rglob("*.*"))]
    paths = sorted(str(path.relative_to(ROOT)) for path in found if is_ours(path))
    return [path for path in paths if path.startswith(prefixes) and path != THIS_FILE]


def findings(paths: Iterable[str]) -> list[Finding]:
    checker = Checker(RULES)
    return [
        found for path in paths for found in checker.check(path, (ROOT / path).read_text("utf-8"))
    ]


def test_sources_and_documents_use_plain_words() -> None:
    found = findings(files(("",)))
    assert not found, "\n".join(["banned words (tests/house/words.toml):", *map(str, found)])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.pattern[:30])
class TestRules:
    """Each rule finds its bad examples and none of the good ones."""

    def check(self, rule: Rule, example: str) -> list[Finding]:
        path = f"{rule.only[0]}example.{'md' if rule.kind == 'turn' else 'py'}"
        return Checker([rule]).check(path, example)

    def test_bad_examples_are_found(self, rule: Rule) -> None:
        assert rule.bad
        assert [example for example in rule.bad if not self.check(rule, example)] == []

    def test_good_examples_are_not_found(self, rule: Rule) -> None:
        assert rule.good
        assert [example for example in rule.good if self.check(rule, example)] == []


class TestFindings:
    """The check itself: where it searches, and what it reports."""

    CODE = (
        '"""A module that no\n    # one likes."""\n'
        "# The task waits for\n# whoever it is.\n"
        "def test_it_wants_nothing() -> None:\n"
        '    raise ValueError(f"{1} had better wait")\n'
    )

    def test_comments_strings_and_names_are_searched_across_lines(self) -> None:
        found = Checker(RULES).check("tests/module.py", self.CODE)
        assert [(each.line, each.text) for each in found] == [
            (1, "no # one"),
            (4, "whoever"),
            (5, "wants"),
            (6, "had better"),
        ]

    def test_a_finding_names_file_line_text_and_wording(self) -> None:
        [found] = Checker(RULES).check("docs/page.md", "One\ncalls it anew.\n")
        assert str(found) == "docs/page.md:2: 'anew'; write: again, or: once per subscription"

    def test_words_of_the_code_itself_are_not_prose(self) -> None:
        assert Checker(RULES).check("a.py", "for it in place:\n    had, better = it\n") == []

    def test_names_are_searched_in_code_only(self) -> None:
        checker = Checker(RULES)
        assert [each.text for each in checker.check("a.py", "x: Door = a.late")] == ["Door", "late"]
        assert checker.check("a.py", "# The Door is a.late\n") == []

    def test_file_names_are_searched(self) -> None:
        [found] = Checker(RULES).check("tests/test_whoever_waits.py", "")
        assert found.line == 0


if __name__ == "__main__":
    for finding in findings(files(tuple(sys.argv[1:]) or ("",))):
        sys.stdout.write(f"{finding}\n")
