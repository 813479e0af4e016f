"""Reports: the status of each rule, tables, explanations, JSON and JUnit XML."""

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from xml.etree import ElementTree

import pytest

from reactive_aio.tck import Outcome, Report, Strength, Verdict
from reactive_aio.tck.report.formats import (
    RuleStatus,
    failures,
    report_as_json,
    report_as_junit,
    rule_statuses,
    summary,
    table,
    unjudged_rules,
)
from reactive_aio.tck.report.verdict import Style

KEPT: Final = Verdict(
    law="spec101_a",
    role="publisher",
    rule="1.1",
    strength=Strength.MUST,
    text="What is tried.",
    outcome=Outcome.PASS,
)
BROKEN: Final = replace(
    KEPT,
    law="spec103_b",
    rule="1.3",
    outcome=Outcome.FAIL,
    broken="1.3",
    why="rule 1.3: two at once",
    drawing="demand   >\nsignals  >",
    log="0.000  on_subscribe()",
    stack='File "x.py", line 3, in act',
    output="printed \x00 words",
)
UNJUDGED: Final = replace(KEPT, outcome=Outcome.NOT_JUDGED, why="the candidate has no x")


def status(*verdicts: Verdict, rule: str = "1.1") -> RuleStatus:
    found = rule_statuses(Report("it", list(verdicts)))
    return next(each for each in found if each.rule == rule)


def text(lines: Iterable[str]) -> str:
    return "\n".join(lines)


class TestRuleStatus:
    def test_a_rule_passes_when_a_law_of_it_passes(self) -> None:
        found = status(KEPT, replace(UNJUDGED, law="spec101_b"))
        assert (found.outcome, found.laws, found.passed) == (Outcome.PASS, 2, 1)
        assert found.why == "1 law not judged: the candidate has no x"

    def test_a_rule_fails_when_one_of_its_laws_fails_on_it(self) -> None:
        found = status(BROKEN, replace(BROKEN, law="spec103_c"), rule="1.3")
        assert found.outcome is Outcome.FAIL
        assert found.why == "two at once (spec103_b, and 1 more)"

    def test_a_rule_fails_when_the_law_of_another_rule_finds_it_broken(self) -> None:
        found = status(KEPT, replace(BROKEN, broken="1.1", why="rule 1.1: too many"))
        assert (found.outcome, found.why) == (Outcome.FAIL, "too many (spec103_b)")

    def test_a_rule_is_not_judged_when_its_law_failed_on_another(self) -> None:
        found = status(replace(BROKEN, broken="1.9"), rule="1.3")
        assert found.outcome is Outcome.NOT_JUDGED
        assert found.why == "its law failed on rule 1.9"

    def test_a_rule_is_not_judged_when_none_of_its_laws_could(self) -> None:
        assert status(UNJUDGED).why == "the candidate has no x"

    def test_one_failure_in_many_repetitions_is_a_failure(self) -> None:
        assert status(KEPT, replace(KEPT, outcome=Outcome.FAIL, broken="1.1"), KEPT).passed == 0

    def test_roles_are_separate(self) -> None:
        report = Report("it", [KEPT, replace(BROKEN, role="processor", rule="1.1", broken="1.1")])
        assert [(each.role, each.outcome) for each in rule_statuses(report)] == [
            ("publisher", Outcome.PASS),
            ("processor", Outcome.FAIL),
        ]
        assert "processor" in text(table(report, Style()))

    def test_rules_are_in_the_order_of_their_numbers(self) -> None:
        rules = ["1.10", "L.1", "2.1", "1.9", "setup"]
        report = Report("it", [replace(KEPT, rule=rule) for rule in rules])
        order = [each.rule for each in rule_statuses(report)]
        assert order == ["setup", "1.9", "1.10", "2.1", "L.1"]

    def test_all_other_rules_are_unjudged_for_a_reason(self) -> None:
        reasons = unjudged_rules(Report("it", [KEPT]))
        assert len([rule for rules in reasons.values() for rule in rules]) == 42


class TestText:
    REPORT: Final = Report("it", [KEPT, BROKEN, replace(UNJUDGED, rule="1.5")])

    @pytest.mark.parametrize("width", [50, 80, 120])
    def test_tables_fit_the_terminal(self, width: int) -> None:
        lines = text(table(self.REPORT, Style(width))).splitlines()
        assert max(map(len, lines)) <= width
        assert "1.3   MUST      FAIL        0/1" in lines[2]

    def test_a_failure_shows_all_that_was_recorded(self) -> None:
        shown = text(failures(self.REPORT, Style()))
        for part in (BROKEN.why, BROKEN.text, BROKEN.log, BROKEN.stack, "signals  >", "printed"):
            assert part in shown
        assert "rule 1.3 MUST: Signals are sequential" in shown
        assert str(BROKEN) in str(self.REPORT)

    def test_short_output_explains_one_failure_of_each_rule(self) -> None:
        other = replace(BROKEN, law="spec101_c", rule="1.1")
        report = Report("it", [other, BROKEN])
        assert text(failures(report, Style())).count("tried ") == 2
        shown = text(failures(report, Style(), short=True))
        assert shown.startswith("\nspec103_b [publisher, MUST]: FAIL")
        assert shown.count("tried ") == 1
        assert "failed on rule 1.3 as well: spec101_c" in shown

    def test_the_summary_counts_laws_and_names_the_rules(self) -> None:
        output = text(summary(self.REPORT, Style()))
        assert "it: 2 laws run in 0.0 s, 1 pass, 1 FAIL; 1 could not judge it" in output
        assert "rules broken, of strength MUST: 1.3" in output
        assert "nothing was judged" in text(summary(Report("it", [UNJUDGED]), Style()))

    def test_only_terminals_get_colors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        assert Style.of(Terminal()).color
        assert not Style.of(io.StringIO()).color
        assert "\x1b[" in text(table(self.REPORT, Style(color=True)))
        monkeypatch.setenv("NO_COLOR", "1")
        assert not Style.of(Terminal()).color


class TestExports:
    def test_verdicts_can_be_read_back_from_json(self) -> None:
        data = json.loads(report_as_json(Report("it", [KEPT, BROKEN]), {"loop": "debug"}))
        assert [Verdict.from_json(each) for each in data["verdicts"]] == [KEPT, BROKEN]
        assert (data["loop"], data["counts"]["FAIL"]) == ("debug", 1)

    def test_a_broken_should_is_a_failure_in_junit_xml_only_with_strict(self) -> None:
        should = replace(BROKEN, strength=Strength.SHOULD)
        for strict, failed in ((False, "0"), (True, "1")):
            tree = ElementTree.fromstring(report_as_junit(Report("it", [should]), strict=strict))
            [suite] = tree
            assert (suite.get("tests"), suite.get("failures")) == ("1", failed)


def test_an_explanation_fits_the_width_of_the_terminal() -> None:
    long = replace(BROKEN, why="rule 1.3: " + "two at once " * 20, text="What is tried. " * 20)
    lines = [*failures(Report("it", [long]), Style(width=80))]
    assert max(map(len, lines)) <= 80
