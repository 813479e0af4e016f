"""Comparing elements, whatever their ``==`` does: it may raise, lie, or return an array."""

from collections.abc import Sequence
from typing import Any

__all__ = ("alike", "all_alike", "all_same", "same")


def same(one: object, other: object) -> bool:
    """Whether they are one object, or equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False


def alike(one: object, other: object) -> bool:
    """Whether one could be the other, made anew.

    Objects without an ``==`` of their own are equal to themselves only, and so much as that cannot
    be said of an array or of ``nan``: of these no more is asked than that they are of one type.
    """
    if same(one, other):
        return True
    return type(one) is type(other) and not _can_be_compared(one, other)


def _can_be_compared(one: object, other: object) -> bool:
    kind: Any = type(one)
    if kind.__eq__ is object.__eq__:
        return False
    try:
        itself: object = one
        return bool(one == itself) and not bool(one == other)
    except Exception:
        return False


def all_same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether they are the same, one by one."""
    return len(some) == len(others) and all(map(same, some, others))


def all_alike(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether they are alike, one by one."""
    return len(some) == len(others) and all(map(alike, some, others))
