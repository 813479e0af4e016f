"""Costs and elements of the last period, at the times that a test says."""

import pytest

from reactive_aio._core.queues.recent import RecentCosts, RecentElements


class TestRecentCosts:
    def test_a_cost_counts_for_one_period(self) -> None:
        costs = RecentCosts(period=10.0)
        costs.add(now=0.0, cost=2.0)
        costs.add(now=4.0, cost=3.0)
        assert costs.total_at(9.9) == 5.0
        assert costs.total_at(10.0) == 3.0
        assert costs.total_at(14.0) == 0.0

    def test_the_oldest_cost_says_when_there_is_room_again(self) -> None:
        costs = RecentCosts(period=10.0)
        costs.add(now=1.0, cost=1.0)
        assert costs.time_left(4.0) == 7.0
        assert costs.time_left(99.0) == 0.0, "never below zero"

    def test_it_is_empty_when_all_costs_are_old(self) -> None:
        costs = RecentCosts(period=1.0)
        assert not costs
        costs.add(now=0.0, cost=1.0)
        assert costs
        costs.total_at(1.0)
        assert not costs

    def test_rounding_errors_do_not_pile_up(self) -> None:
        costs = RecentCosts(period=1.0)
        for _ in range(1000):
            costs.add(now=0.0, cost=0.1)
        assert costs.total_at(1.0) == 0.0


class TestRecentElements:
    @staticmethod
    def no_clock() -> float:
        raise AssertionError("without a ttl the time is not read")

    def test_the_last_ones_are_held(self) -> None:
        recent = RecentElements[int](2, None, self.no_clock)
        recent.add([1])
        recent.add([2, 3])
        assert recent.held() == [2, 3]

    @pytest.mark.parametrize(("now", "held"), [(5.0, [1, 2]), (10.0, [2]), (14.9, [2]), (15.0, [])])
    def test_an_element_is_held_for_its_ttl(self, now: float, held: list[int]) -> None:
        time = 0.0
        recent = RecentElements[int](8, 10.0, lambda: time)
        recent.add([1])
        time = 5.0
        recent.add([2])
        time = now
        assert recent.held() == held
