"""The scoreboard matches the verdicts, is complete, and shows this library without failures."""

from itertools import chain
from pathlib import Path

import pytest

from reactive_aio.tck import RULES, Outcome, Strength, Verdict, cases
from reactive_aio.tck.adapters import KEPT_BY_ADAPTER
from reactive_aio.tck.candidate import load_candidate
from reactive_aio.tck.law import SETUP
from reactive_aio.tck.rules import LIBRARY_RULES
from tests.tck.scoreboard import __main__ as command
from tests.tck.scoreboard.contestant import Contestant
from tests.tck.scoreboard.other_libraries import OTHER_LIBRARIES
from tests.tck.scoreboard.scores import GROUPS, details, score, table
from tests.tck.scoreboard.this_library import THIS_LIBRARY

pytestmark = pytest.mark.slow

ALL = (*THIS_LIBRARY, *OTHER_LIBRARIES)


def section() -> list[str]:
    _, _, after = command.PAGE.read_text("utf-8").partition(command.BEGIN)
    between, end, _ = after.partition(command.END)
    assert end
    return between.splitlines()


def rows() -> dict[str, str]:
    found = [line for line in section() if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in found}


class TestThePage:
    def test_it_has_all_columns_and_contestants(self) -> None:
        assert f"| | {' | '.join(GROUPS)} |" in section()
        assert list(rows()) == [contestant.name for contestant in ALL]

    @pytest.mark.parametrize("contestant", THIS_LIBRARY, ids=lambda each: each.name)
    def test_this_library_keeps_all_rules(self, contestant: Contestant) -> None:
        row = rows()[contestant.name]
        # If it is not: run `nox -s scoreboard`.
        assert "✓" in row or not cases(load_candidate(contestant.where))
        assert not set("✗△?") & set(row)

    def test_every_broken_rule_has_details(self) -> None:
        text = "\n".join(section())
        for contestant in ALL:
            broken = set("✗△") & set(rows()[contestant.name])
            assert (f"**{contestant.name}** (`{contestant.where}`)" in text) == bool(broken)


@pytest.mark.parametrize("contestant", ALL, ids=lambda each: each.name)
def test_every_contestant_can_be_judged_by_the_command(contestant: Contestant) -> None:
    load_candidate(contestant.where)
    assert contestant.adapter in {"", *KEPT_BY_ADAPTER}


def test_every_rule_has_its_column() -> None:
    columns = list(chain(*GROUPS.values()))
    assert len(columns) == len(set(columns))
    assert set(columns) == {SETUP, *RULES, *LIBRARY_RULES}


def test_a_contestant_is_judged_in_another_process() -> None:
    verdicts = command.judged(THIS_LIBRARY[0])
    assert not score(verdicts).broken
    assert any(verdict.outcome is Outcome.PASS for verdict in verdicts)


def test_the_page_keeps_what_is_around_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n", "utf-8")
    monkeypatch.setattr(command, "PAGE", page)
    command.write("new")
    expected = f"before\n{command.BEGIN}\n\nnew\n\n{command.END}\nafter\n"
    assert page.read_text("utf-8") == expected
    page.write_text("nothing", "utf-8")
    with pytest.raises(SystemExit, match="no markers for the scoreboard"):
        command.write("new")


def verdict(
    rule: str,
    outcome: Outcome = Outcome.PASS,
    broken: str = "",
    strength: Strength = Strength.MUST,
    why: str = "",
) -> Verdict:
    return Verdict(
        law=f"spec{rule.replace('.', '')}_something",
        role="publisher",
        rule=rule,
        strength=strength,
        text="Something.",
        outcome=outcome,
        broken=broken,
        why=why,
    )


GROUP = ("1.1", "1.2", "1.3")


class TestAScore:
    def test_a_failed_law_counts_for_the_rule_that_was_broken(self) -> None:
        found = score([verdict("1.1"), verdict("1.3", Outcome.FAIL, broken="1.1")])
        assert found.cell(GROUP) == "**✗ 1.1** · ? 1"

    def test_a_rule_is_kept_if_one_law_says_so_and_none_otherwise(self) -> None:
        found = score(
            [
                verdict("1.2"),
                verdict("1.2", Outcome.FAIL, broken="1.1"),
                verdict("1.3", Outcome.NOT_JUDGED),
            ]
        )
        assert found.cell(GROUP) == "**✗ 1.1** · ✓ 1"

    def test_what_the_adapter_keeps_is_counted_separately(self) -> None:
        found = score([verdict("1.1"), verdict("1.2")], by_adapter=frozenset({"1.1"}))
        assert found.cell(GROUP) == "✓ 1 · (1)"

    def test_a_broken_rule_counts_even_if_the_adapter_should_keep_it(self) -> None:
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1")], by_adapter=frozenset({"1.1"}))
        assert found.cell(GROUP) == "**✗ 1.1**"

    def test_a_broken_should_has_its_own_sign(self) -> None:
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1", strength=Strength.SHOULD)])
        assert found.cell(GROUP) == "△ 1.1"

    def test_nothing_judged_is_a_dash(self) -> None:
        assert score([verdict("1.1", Outcome.NOT_JUDGED)]).cell(GROUP) == "–"

    def test_the_details_do_not_differ_between_runs(self) -> None:
        why = "rule 1.1: <Thing at 0x7f12>\n came `twice`"
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1", why=why)])
        _, _, line, _ = details(THIS_LIBRARY[0], found)
        assert line == (
            "- ✗ 1.1 *Never send more elements than have been requested.* "
            "`spec11_something`: `<Thing> came 'twice'`"
        )

    def test_a_contestant_without_broken_rules_has_no_details(self) -> None:
        assert list(details(THIS_LIBRARY[0], score([verdict("1.1")]))) == []

    def test_a_row_has_a_cell_for_each_column(self) -> None:
        _, _, row = table({THIS_LIBRARY[0]: score([verdict("1.1")])})
        assert row == f"| {THIS_LIBRARY[0].name} | – | ✓ 1 |{' – |' * (len(GROUPS) - 2)}"
