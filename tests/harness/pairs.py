"""A test over several tables, with few of their combinations: those in which each two rows meet.

What a fault needs is nearly always one row, or two that meet: a place and a kind of error, an
operator and an event loop. The product of all tables would take many times as long, and find the
same.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest


def each_pair(**tables: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize a test so that each two rows of different tables meet in one of its runs."""
    columns = [list(table) for table in tables.values()]
    return pytest.mark.parametrize(
        tuple(tables), covering(columns), ids=lambda row: str(row).replace("`", "")
    )


def covering(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Combinations of one row of each column, until each two rows have met."""
    missing = {
        ((one, a), (other, b)): None
        for one, other in combinations(range(len(columns)), 2)
        for a in columns[one]
        for b in columns[other]
    }
    found: list[tuple[Any, ...]] = []
    while missing:
        chosen = dict(next(iter(missing)))
        for column, rows in enumerate(columns):
            if column not in chosen:
                chosen[column] = max(rows, key=lambda row: _news(chosen | {column: row}, missing))
        for pair in combinations(sorted(chosen.items()), 2):
            missing.pop(pair, None)
        found.append(tuple(chosen[column] for column in range(len(columns))))
    return found


def _news(chosen: dict[int, Any], missing: dict[Any, None]) -> int:
    """How many pairs of what is chosen have not met before."""
    return sum(pair in missing for pair in combinations(sorted(chosen.items()), 2))
