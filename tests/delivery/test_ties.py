"""Ties, without a flow: which roots are settled, with what, and when nothing moves."""

from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from reactive_aio.delivery import BatchFailed, Unfinished
from reactive_aio.delivery.ties import (
    Batch,
    Failure,
    Group,
    Motion,
    Root,
    Tie,
    Tied,
    batched,
)


class Roots:
    """Makes roots, and notes what they were settled with."""

    def __init__(self) -> None:
        self.still = 0
        self.motion = Motion(self._on_still)
        self.results: dict[int, Exception | None] = {}
        self.fatal: set[int] = set()

    def _on_still(self) -> None:
        self.still += 1

    def root(self, name: int) -> Root:
        def settled(name: int, failure: Failure | None) -> None:
            assert name not in self.results, "settled twice"
            self.results[name] = None if failure is None else failure.error
            if failure is not None and failure.is_fatal:
                self.fatal.add(name)

        return Root(self.motion, settled, name)


def test_the_first_settlement_holds() -> None:
    roots = Roots()
    root = roots.root(0)
    assert root.settle(None)
    assert not root.settle(Failure(ValueError()))
    assert roots.results == {0: None}
    assert (roots.motion.moving, roots.still) == (0, 1)


def test_nothing_can_be_settled_when_the_subscription_is_over() -> None:
    roots = Roots()
    part = Group(roots.root(0)).add()
    roots.motion.is_over = True
    assert not part.settle(None)
    assert roots.results == {}


class TestGroup:
    def test_an_element_without_parts_is_acknowledged_at_once(self) -> None:
        roots = Roots()
        Group(roots.root(0)).close()
        assert roots.results == {0: None}
        assert roots.motion.moving == 0

    def test_an_element_is_acknowledged_after_its_last_part(self) -> None:
        roots = Roots()
        group = Group(roots.root(0))
        first, second = group.add(), group.add()
        first.settle(None)
        second.settle(None)
        assert roots.results == {}, "another part may follow"
        third = group.add()
        group.close()
        assert roots.results == {}
        third.settle(None)
        assert roots.results == {0: None}

    def test_a_part_that_fails_waits_for_the_others(self) -> None:
        roots, error = Roots(), ValueError()
        group = Group(roots.root(0))
        first, second = group.add(), group.add()
        group.close()
        first.settle(Failure(error))
        assert roots.results == {}
        second.settle(None)
        assert roots.results == {0: error}

    def test_the_errors_of_several_parts_form_a_group(self) -> None:
        roots, errors = Roots(), [ValueError(), KeyError()]
        group = Group(roots.root(0))
        for error in errors:
            group.add().settle(Failure(error))
        group.close()
        found = roots.results[0]
        assert isinstance(found, ExceptionGroup)
        assert [*cast("ExceptionGroup[Exception]", found).exceptions] == errors

    def test_a_part_that_failed_with_others_does_not_hide_an_error(self) -> None:
        roots, error = Roots(), ValueError()
        group = Group(roots.root(0))
        for each in (Unfinished(), error):
            group.add().settle(Failure(each))
        group.close()
        assert roots.results == {0: error}

    def test_parts_that_could_not_be_made_nack_the_element(self) -> None:
        roots, error = Roots(), ValueError()
        group = Group(roots.root(0))
        group.add().settle(None)
        group.close(Failure(error, is_fatal=True))
        assert (roots.results, roots.fatal) == ({0: error}, {0})

    def test_the_positions_of_one_list_are_not_those_of_another(self) -> None:
        roots = Roots()
        members = [roots.root(0), roots.root(1)]
        for each in members:
            each.rest()
        group = Group(Batch(roots.motion, members))
        group.add().settle(Failure(BatchFailed({0: ValueError()})))
        group.close()
        assert all(isinstance(result, ExceptionGroup) for result in roots.results.values())
        assert len(roots.results) == 2


class TestBatch:
    def batch(self, roots: Roots, size: int) -> Tie:
        elements = [Tied(i, roots.root(i)) for i in range(size)]
        for each in elements:
            each.tie.rest()
        assert (roots.motion.moving, roots.motion.resting) == (0, size)
        whole = batched(elements)
        assert whole.value == [*range(size)]
        assert (roots.motion.moving, roots.motion.resting) == (1, 0)
        return whole.tie

    def test_a_list_acknowledges_its_elements(self) -> None:
        roots = Roots()
        self.batch(roots, 3).settle(None)
        assert roots.results == {0: None, 1: None, 2: None}
        assert roots.motion.moving == 0

    def test_each_element_gets_its_own_failure(self) -> None:
        roots, error = Roots(), ValueError()
        self.batch(roots, 3).settle(Failure(BatchFailed({1: error}), is_fatal=True, is_last=True))
        assert roots.results == {0: None, 1: error, 2: None}
        assert roots.fatal == {1}

    def test_elements_without_an_error_are_not_done_if_more_work_follows(self) -> None:
        roots, error = Roots(), ValueError()
        self.batch(roots, 3).settle(Failure(BatchFailed({1: error})))
        assert roots.results[1] is error
        assert [type(roots.results[i]) for i in (0, 2)] == [Unfinished, Unfinished]

    def test_any_other_failure_is_that_of_all(self) -> None:
        roots, error = Roots(), ValueError()
        self.batch(roots, 2).settle(Failure(error))
        assert roots.results == {0: error, 1: error}

    def test_a_position_outside_the_list_fails_all_of_it(self) -> None:
        roots, error = Roots(), BatchFailed({7: ValueError()})
        self.batch(roots, 2).settle(Failure(error))
        assert roots.results == {0: error, 1: error}


class TestBatchFailed:
    @pytest.mark.parametrize(
        ("errors", "message"),
        [
            ({}, "errors is empty"),
            ({-1: ValueError()}, "an int from 0, not -1"),
            ({"a": ValueError()}, "an int from 0, not 'a'"),
            ({True: ValueError()}, "an int from 0, not True"),
            ({0: "broken"}, "an Exception, not 'broken'"),
        ],
    )
    def test_it_needs_errors_by_position(self, errors: Any, message: str) -> None:
        with pytest.raises((TypeError, ValueError), match=message):
            BatchFailed(errors)

    def test_its_message_has_the_first_errors(self) -> None:
        errors = {i: ValueError(i) for i in range(9)}
        assert str(BatchFailed(errors)).startswith(
            "the work on 9 elements of a list failed: 0: ValueError(0), 1:"
        )


@given(
    st.lists(st.tuples(st.sampled_from(["divide", "list", "settle"]), st.integers(0, 99))),
    st.integers(1, 5),
)
def test_roots_are_settled_once_when_all_is_done_and_nothing_moves_then(
    acts: list[tuple[str, int]], count: int
) -> None:
    """Elements are divided, collected and settled in any order; each root fails if a leaf does."""
    roots = Roots()
    leaves: list[tuple[Tie, frozenset[int]]] = [
        (roots.root(name), frozenset({name})) for name in range(count)
    ]
    failed: set[int] = set()

    def settle(tie: Tie, names: frozenset[int], fails: bool) -> None:
        if fails:
            failed.update(names)
        assert tie.settle(Failure(ValueError()) if fails else None)

    def divide(tie: Tie, parts: int) -> list[Tie]:
        group = Group(tie)
        made: list[Tie] = [group.add() for _ in range(parts)]
        group.close()
        return made

    for act, pick in acts:
        if not leaves:
            break
        assert roots.motion.moving == len(leaves)
        tie, names = leaves.pop(pick % len(leaves))
        if act == "divide":
            leaves += [(part, names) for part in divide(tie, pick % 4)]
        elif act == "list":
            others = [leaves.pop() for _ in range(min(pick % 3, len(leaves)))]
            members = [(tie, names), *others]
            for member, _ in members:
                member.rest()
            whole = Batch(roots.motion, [member for member, _ in members])
            leaves.append((whole, frozenset[int]().union(*(each for _, each in members))))
        else:
            settle(tie, names, fails=pick % 5 == 0)
        open_names = frozenset[int]().union(*(each for _, each in leaves))
        assert roots.results.keys() == set(range(count)) - open_names
    for tie, names in leaves:
        settle(tie, names, fails=False)
    assert {name for name, error in roots.results.items() if error is not None} == failed
    assert roots.results.keys() == {*range(count)}
    assert (roots.motion.moving, roots.motion.resting) == (0, 0)
