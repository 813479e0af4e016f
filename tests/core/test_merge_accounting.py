"""No upstream is ahead by more than its prefetch, nothing is lost, order is kept."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.merge_accounting import MergeAccounting

Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["arrive", "take", "settle"]), st.integers(0, 2), st.integers(1, 9))
)


class Model:
    """Upstreams that send what is requested, and a downstream that takes and processes."""

    def __init__(self, prefetch: int) -> None:
        self.prefetch = prefetch
        self.accounting: MergeAccounting[int] = MergeAccounting(prefetch)
        self.to_come = dict.fromkeys(range(3), prefetch)
        self.sent: list[int] = []
        self.taken: list[int] = []
        self.settled = 0

    def arrive(self, key: int, count: int) -> None:
        count = min(count, self.to_come[key])
        if count:
            self.to_come[key] -= count
            self.sent += [key] * count
            self.accounting.add(key, count)

    def take(self, _: int, at_most: int) -> None:
        portions = self.accounting.take(at_most)
        assert sum(count for _, count in portions) <= at_most
        self.taken += [key for key, count in portions for _ in range(count)]
        assert self.accounting.taken == len(self.taken)

    def settle(self, _: int, __: int) -> None:
        processed = self.accounting.taken
        touched = self.accounting.mark_processed(processed)
        assert set(touched) == set(self.taken[self.settled :])
        self.settled = processed
        for key in touched:
            self.to_come[key] += self.accounting.refill(key)

    def check(self) -> None:
        assert self.taken == self.sent[: len(self.taken)], "in the order of arrival"
        assert self.accounting.waiting == len(self.sent) - len(self.taken)
        for key in self.to_come:
            holds = self.sent.count(key) - self.taken[: self.settled].count(key)
            assert self.accounting.held_by(key) == holds
            assert holds + self.to_come[key] <= self.prefetch


@given(st.integers(1, 12), STEPS)
def test_any_sequence_keeps_order_and_bound(prefetch: int, steps: list[Step]) -> None:
    model = Model(prefetch)
    for what, key, count in steps:
        getattr(model, what)(key, count)
        model.check()


@given(st.integers(1, 12), STEPS)
def test_every_upstream_makes_progress_when_all_is_processed(
    prefetch: int, steps: list[Step]
) -> None:
    model = Model(prefetch)
    for what, key, count in steps:
        getattr(model, what)(key, count)
    model.take(0, 10**6)
    model.settle(0, 0)
    for key, to_come in model.to_come.items():
        assert to_come > 0
        assert model.accounting.held_by(key) == 0


def test_elements_that_did_not_wait_are_counted() -> None:
    accounting: MergeAccounting[str] = MergeAccounting(4)
    accounting.add("a", 2)
    assert accounting.take(1) == [("a", 1)]
    accounting.add_taken("b", 3)
    assert (accounting.held_by("a"), accounting.held_by("b"), accounting.waiting) == (2, 3, 1)
    assert accounting.mark_processed(1) == ["a"]
    assert accounting.mark_processed(4) == ["b"]
    assert (accounting.held_by("a"), accounting.held_by("b")) == (1, 0)
    accounting.forget("b")
    assert accounting.refill("b") == 0
