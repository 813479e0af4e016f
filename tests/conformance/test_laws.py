"""Every law on every case, on every loop. What breaks one says so, and what was seen."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reactive_aio.tck import FAILING_LAWS, INFINITE_LAWS, LAWS
from reactive_aio.tck.recorder import Terms, terms
from tests.cases import Case, cases

# A case that hangs must not take the longest patience times the number of laws.
UNDER = Terms(come=5.0)
# Turns of a loop say nothing about threads.
BY_THREADS = replace(UNDER, quiet=0.02)


def judged(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases(kind), ids=str)


async def keep(case: Case, law: Callable[..., Any]) -> None:
    under = BY_THREADS if "thread" in str(case) else UNDER
    before = terms.set(replace(under, ordered=case.ordered))
    try:
        await law(case.make)
    finally:
        terms.reset(before)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@judged("OF_LENGTH")
async def test_law_for_streams_of_a_length(case: Case, law: Callable[..., Any]) -> None:
    await keep(case, law)


@pytest.mark.parametrize("law", FAILING_LAWS.values(), ids=FAILING_LAWS.keys())
@judged("FAILING")
async def test_law_for_streams_that_fail(case: Case, law: Callable[..., Any]) -> None:
    await keep(case, law)


@pytest.mark.parametrize("law", INFINITE_LAWS.values(), ids=INFINITE_LAWS.keys())
@judged("INFINITE")
async def test_law_for_endless_streams(case: Case, law: Callable[..., Any]) -> None:
    await keep(case, law)
