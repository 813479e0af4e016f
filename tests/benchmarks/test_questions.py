"""No question rots: every case runs, and does the work of the hand-written code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reactive_aio as rx
from benchmarks.runner.catalog import (
    CORE,
    FAMILIES,
    Entry,
    NoSuchQuestion,
    entries,
    heading,
    places,
    select,
)
from benchmarks.runner.question import Question
from reactive_aio import Flow
from tests.harness.one_run import in_one_run

ROOT = Path(__file__).parents[2]
QUESTIONS = [entry for place in select([*CORE]) for entry in entries(*place)]
CROWDS = [entry for place in select(["asgi/crowd", "rsocket/crowd"]) for entry in entries(*place)]
OPERATORS = [entry for place in select(["operators"]) for entry in entries(*place)]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=110,
        check=False,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("asked", "entries_"),
    [([], QUESTIONS), (["operators"], OPERATORS), (["asgi/crowd", "rsocket/crowd"], CROWDS)],
    ids=["the core", "operators", "crowds"],
)
def test_every_case_runs_and_has_the_checksum_of_the_code_handwritten(
    asked: list[str], entries_: list[Entry]
) -> None:
    ended = run("benchmarks", *asked, "--quick")
    assert ended.returncode == 0, ended.stderr
    assert entries_
    for entry in entries_:
        assert f"{entry.key}: " in ended.stdout


def test_a_question_is_about_an_operator() -> None:
    asked = {entry.name.rstrip("_") for entry in OPERATORS if "pools" not in entry.key}
    assert not [name for name in asked if not hasattr(Flow, name) and not hasattr(rx, name)]


@in_one_run
@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry.key)
def test_a_question_compares_ours_with_the_code_handwritten(entry: Entry) -> None:
    assert isinstance(entry.question, Question)
    first, *others = entry.question.cases
    assert first.kind == "hand-written"
    assert others


def test_no_two_ways_have_one_name() -> None:
    names = [
        case.name
        for entry in QUESTIONS
        if isinstance(entry.question, Question)
        for case in entry.question.cases
        if case.goal is not None
    ]
    assert len(names) == len(set(names))


def test_every_family_has_a_heading() -> None:
    assert all(heading(family) and heading(family) != family for family in FAMILIES)
    assert {family for family, _ in places()} == {*FAMILIES}


def test_questions_are_selected_by_family_by_name_and_by_both() -> None:
    assert {family for family, _ in select(["async_for", "memory"])} == {"async_for", "memory"}
    places_of_boundary = [(family, "boundary") for family in ("on_next", "async_for", "memory")]
    assert select(["boundary"]) == places_of_boundary
    assert select(["hot/emit", "on_next/zip"]) == [("on_next", "zip"), ("hot", "emit")]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(NoSuchQuestion, match=r"'bounds'.*async_for.*hot/emit"):
        select(["bounds"])
