"""The guards of the table are where it says, and each has a recorded proof."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.guards.changes import Change, changed
from tests.guards.mutant import main
from tests.guards.prove import TABLE, Verdict, in_forks
from tests.guards.sites import all_sites, reasons, sites_of
from tests.guards.table import GUARDS, Guard
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.slow


@in_one_run
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_guard_is_in_its_file_and_can_be_taken_away(guard: Guard) -> None:
    compile(changed(guard.change), guard.file, "exec")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_test_fails_without_the_guard(guard: Guard) -> None:
    row = next(row for row in TABLE.read_text().splitlines() if row.startswith(f"| {guard.name} |"))
    assert "**no test**" not in row


FILE = "reactive_aio/_core/demand.py"


def test_every_decision_is_found_and_can_be_taken_away() -> None:
    assert len(all_sites()) > 1500
    for site in sites_of(FILE):
        before = ast.unparse(ast.parse((TABLE.parents[1] / FILE).read_text("utf-8")))
        after = ast.unparse(changed(site.change))
        differing = Counter(before.splitlines())
        differing.subtract(after.splitlines())
        assert sum(abs(n) for n in differing.values()) == 2, site


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"not there.*demand\.py: Demand\.add: nothing → False"):
        changed(Change(FILE, "Demand.add", "nothing", "False"))


def test_a_string_stands_for_a_part_of_a_longer_one() -> None:
    change = Change("reactive_aio/_core/compiler/loops.py", "", "'yield AWAIT_SIGNAL'", "'pass'")
    assert "must_await(r): pass" in ast.unparse(changed(change))


def test_a_change_of_what_has_been_imported_is_refused() -> None:
    with pytest.raises(RuntimeError, match="has been imported"):
        main("null")


def test_a_fork_names_the_test_that_notices_a_change_and_would_pass_without(tmp_path: Path) -> None:
    noticed = Change(FILE, "Demand.take", "self.outstanding == UNBOUNDED", "False")
    file, failing = "tests/core/test_demand.py", "tests/house/faults.py"
    tests = [
        f"{failing}::TestFaulty::test_error_log_without_a_loop",
        f"{file}::test_unbounded_demand_is_never_used_up",
    ]
    unnoticed = Change(FILE, "require_demand", "n < 1", "False")
    verdicts = in_forks([(noticed, tests), (unnoticed, tests[1:])], tmp_path, [file, failing])
    assert set(verdicts) == {Verdict(noticed, tests[1]), Verdict(unnoticed, "")}


def test_what_no_test_can_notice_is_there_and_has_a_reason() -> None:
    places = {site.change[:3] for site in all_sites()}
    for place, why in reasons().items():
        assert place in places, f"this is not there (any more): {place}"
        assert re.fullmatch(r"[A-Z].{20,}\.", why, re.DOTALL), (place, why)
