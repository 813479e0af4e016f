"""Demand: additive, saturating, never negative."""

import pytest
from hypothesis import example, given, strategies as st

from reactive_aio._core.demand import UNBOUNDED, Demand, require_demand
from reactive_aio.errors import IllegalDemand

amounts = st.integers(1, UNBOUNDED) | st.integers(1, 5)


@given(st.lists(amounts))
@example([UNBOUNDED, 1])
def test_requests_add_up_to_the_bound(requests: list[int]) -> None:
    """3.8, 3.17."""
    demand = Demand()
    for n in requests:
        demand.add(n)
    assert demand.outstanding == min(sum(requests), UNBOUNDED)
    assert demand.unbounded == (demand.outstanding == UNBOUNDED)
    assert bool(demand) == bool(requests)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 50))))
def test_no_more_is_taken_than_was_requested(steps: list[tuple[bool, int]]) -> None:
    """1.1."""
    demand, requested, taken = Demand(), 0, 0
    for is_request, n in steps:
        if is_request:
            demand.add(n)
            requested += n
        else:
            got = demand.take(n)
            assert 0 <= got <= n
            taken += got
        assert demand.outstanding == requested - taken >= 0


@given(st.lists(st.integers(1, 10**6), min_size=1))
def test_unbounded_demand_is_never_used_up(takes: list[int]) -> None:
    """3.17."""
    demand = Demand(UNBOUNDED)
    assert [demand.take(n) for n in takes] == takes
    assert demand.unbounded


@given(st.integers(min_value=1))
def test_every_positive_int_is_demand(n: int) -> None:
    assert require_demand(n) == n


class Many(int):
    """A subclass of int is an int, but for bool."""


def test_a_subclass_of_int_counts_as_its_value() -> None:
    assert type(require_demand(Many(3))) is int


@pytest.mark.parametrize("n", [0, -1, -(2**80), True, False, 1.0, 1.5, None, "1", [], float("nan")])
def test_anything_else_is_refused_by_name(n: object) -> None:
    """3.9."""
    with pytest.raises(IllegalDemand, match=r"3\.9: non-positive subscription request") as caught:
        require_demand(n)
    assert caught.value.n is n
    assert isinstance(caught.value, ValueError)
