"""The gate counts the same on every run, and finds a way that has lost 25 %."""

from pathlib import Path

import pytest

from benchmarks.gate import VERSION, compare, record, recorded, report
from benchmarks.runner.instructions import counted_cases, instructions_each
from benchmarks.runner.question import Question
from reactive_aio import range as numbers

from .test_questions import run


@pytest.mark.slow
def test_no_way_has_lost_since_its_instructions_were_recorded() -> None:
    if VERSION not in recorded():
        pytest.skip(f"nothing is recorded for Python {VERSION}")
    ended = run("benchmarks.gate")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def extra(element: int) -> int:
    return element


def chain(extra_stages: int) -> Question:
    question = Question("A chain", 1000, counted=128)

    @question.ours("chain")
    async def run(count: int) -> int:
        flow = numbers(count).map(extra)
        for _ in range(extra_stages):
            flow = flow.map(extra)
        return await flow.count()

    return question


def counted(question: Question) -> float:
    [case] = counted_cases(question)
    return instructions_each(question, case)


def test_the_count_is_the_same_on_every_run() -> None:
    assert counted(chain(0)) == counted(chain(0))


def test_the_count_does_not_include_starting_and_ending() -> None:
    question = Question("A loop", 1000, counted=128)

    @question.ours("loop")
    async def run(count: int) -> int:
        total = 0
        for _ in range(100):
            total += 1
        for _ in range(count):
            total += 1
        return total

    assert counted(question) < 12


def test_a_stage_more_is_found() -> None:
    before, after = counted(chain(0)), counted(chain(1))
    assert after > 1.25 * before
    assert compare({"chain": after}, {"chain": before}).lost


@pytest.mark.parametrize(
    ("now", "lost", "gained"), [(100, 0, 0), (115, 0, 0), (125, 1, 0), (90, 0, 0), (75, 0, 1)]
)
def test_a_loss_of_a_quarter_is_found(now: float, lost: int, gained: int) -> None:
    verdict = compare({"way": now}, {"way": 100.0})
    assert (len(verdict.lost), len(verdict.gained)) == (lost, gained)
    assert report(verdict) == lost


def test_ways_without_a_record_and_records_without_a_way_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdict = compare({"new": 1.0}, {"old": 1.0})
    assert verdict.unknown == ["new", "old"]
    assert compare({"new": 1.0}, {"old": 1.0}, is_all=False).unknown == ["new"]
    assert report(verdict) == 0
    assert "not recorded" in capsys.readouterr().out


def test_records_of_other_versions_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "instructions.json"
    file.write_text('{"2.7": {"way": 1.0}}', "utf-8")
    record({"way": 12.34}, file)
    assert recorded(file) == {"2.7": {"way": 1.0}, VERSION: {"way": 12.3}}


def test_ways_with_threads_or_in_another_unit_are_not_counted() -> None:
    for question in (Question("Threads", 1, counted=0), Question("Bytes", 1, unit="B")):

        @question.ours("way")
        async def way(count: int) -> int:
            return count

        assert counted_cases(question) == []
