"""Comparisons of elements whose ``==`` may raise, lie, or return an array."""

from collections.abc import Sequence
from typing import Any


def same(one: object, other: object) -> bool:
    """Whether they are identical or equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False


def alike(one: object, other: object) -> bool:
    """Whether they can be two instances of the same element.

    Objects without an ``==`` of their own are equal only to themselves, and arrays and ``nan`` not
    even to themselves: these need only have the same type.
    """
    if same(one, other):
        return True
    return type(one) is type(other) and not _is_comparable(one, other)


def _is_comparable(one: object, other: object) -> bool:
    kind: Any = type(one)
    if kind.__eq__ is object.__eq__:
        return False
    try:
        itself: object = one
        return bool(one == itself) and not bool(one == other)
    except Exception:
        return False


def all_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(same, some, others))


def all_alike(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(alike, some, others))
