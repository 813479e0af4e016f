"""The scoreboard says what the laws said, of everybody by the same measure, and we are green."""

from itertools import chain
from pathlib import Path

import pytest

from reactive_aio.tck import RULES, Outcome, Strength, Verdict, cases
from reactive_aio.tck.adapters import ANSWERED
from reactive_aio.tck.law import SETUP
from reactive_aio.tck.rules import HOUSE_RULES
from reactive_aio.tck.subject import find_subject
from tests.tck.scoreboard import __main__ as command
from tests.tck.scoreboard.board import GROUPS, details, score, table
from tests.tck.scoreboard.contestant import Contestant
from tests.tck.scoreboard.ours import OURS
from tests.tck.scoreboard.strangers import STRANGERS

pytestmark = pytest.mark.slow

ALL = (*OURS, *STRANGERS)


def section() -> list[str]:
    _, _, after = command.PAGE.read_text("utf-8").partition(command.BEGIN)
    between, end, _ = after.partition(command.END)
    assert end
    return between.splitlines()


def rows() -> dict[str, str]:
    found = [line for line in section() if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in found}


class TestThePage:
    def test_it_has_the_columns_and_everybody(self) -> None:
        assert f"| | {' | '.join(GROUPS)} |" in section()
        assert list(rows()) == [contestant.name for contestant in ALL]

    @pytest.mark.parametrize("contestant", OURS, ids=lambda each: each.name)
    def test_we_are_green(self, contestant: Contestant) -> None:
        row = rows()[contestant.name]
        # If it is not: run the scoreboard again.
        assert "✓" in row or not cases(find_subject(contestant.where))
        assert not set("✗△?") & set(row)

    def test_whoever_breaks_a_rule_is_told_how(self) -> None:
        text = "\n".join(section())
        for contestant in ALL:
            broken = set("✗△") & set(rows()[contestant.name])
            assert (f"**{contestant.name}** (`{contestant.where}`)" in text) == bool(broken)


@pytest.mark.parametrize("contestant", ALL, ids=lambda each: each.name)
def test_everybody_can_be_judged_by_the_command_too(contestant: Contestant) -> None:
    find_subject(contestant.where)
    assert contestant.adapter in {"", *ANSWERED}


def test_every_rule_has_its_column() -> None:
    columns = list(chain(*GROUPS.values()))
    assert len(columns) == len(set(columns))
    assert set(columns) == {SETUP, *RULES, *HOUSE_RULES}


def test_one_is_judged_in_another_process() -> None:
    verdicts = command.judged(OURS[0])
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
    with pytest.raises(SystemExit, match="no place for the scoreboard"):
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

    def test_what_the_adapter_keeps_is_no_merit(self) -> None:
        found = score([verdict("1.1"), verdict("1.2")], answered=frozenset({"1.1"}))
        assert found.cell(GROUP) == "✓ 1 · (1)"

    def test_what_is_broken_although_the_adapter_keeps_it_is_told(self) -> None:
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1")], answered=frozenset({"1.1"}))
        assert found.cell(GROUP) == "**✗ 1.1**"

    def test_a_broken_should_is_told_apart(self) -> None:
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1", strength=Strength.SHOULD)])
        assert found.cell(GROUP) == "△ 1.1"

    def test_nothing_judged_is_a_dash(self) -> None:
        assert score([verdict("1.1", Outcome.NOT_JUDGED)]).cell(GROUP) == "–"

    def test_the_words_do_not_differ_from_run_to_run(self) -> None:
        why = "rule 1.1: <Thing at 0x7f12>\n came `twice`"
        found = score([verdict("1.1", Outcome.FAIL, broken="1.1", why=why)])
        _, _, line, _ = details(OURS[0], found)
        assert line == (
            "- ✗ 1.1 *Never send more elements than have been requested.* "
            "`spec11_something`: `<Thing> came 'twice'`"
        )

    def test_who_breaks_nothing_has_no_paragraph(self) -> None:
        assert list(details(OURS[0], score([verdict("1.1")]))) == []

    def test_a_row_has_a_cell_for_each_column(self) -> None:
        _, _, row = table({OURS[0]: score([verdict("1.1")])})
        assert row == f"| {OURS[0].name} | – | ✓ 1 |{' – |' * (len(GROUPS) - 2)}"
