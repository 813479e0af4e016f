"""The collector of batches: full or due, one timer for the oldest, never more than its size."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.batch_timer import BatchTimer, TimerAction

CHOICES = st.lists(st.tuples(st.sampled_from(["arrive", "tick", "request"]), st.integers(1, 5)))


@given(st.integers(1, 5), CHOICES)
def test_any_sequence_keeps_elements_in_batches_and_no_longer_than_the_timer(
    size: int, choices: list[tuple[str, int]]
) -> None:
    collector = BatchTimer(size)
    running = False
    demand = sent = out = 0

    def obey(clock: TimerAction) -> None:
        nonlocal running
        if clock is not TimerAction.LEAVE:
            assert running == (clock is TimerAction.STOP)
            running = clock is TimerAction.START

    for what, count in choices:
        if what == "arrive" and collector.held < size:
            count = min(count, size - collector.held)
            sent += count
            obey(collector.add(count))
        elif what == "tick" and running:
            running = False
            obey(collector.rang())
            assert not collector.held or not demand or collector.batch(demand)
        elif what == "request":
            demand += 1
        while batch := collector.batch(demand):
            assert 1 <= batch <= size
            out, demand = out + batch, demand - 1
            obey(collector.handed_over(batch))
        assert collector.held == sent - out
        # What waits is either due and unasked for, or a timer runs that will make it so.
        if 0 < collector.held < size:
            assert running or not demand
        if not collector.held:
            assert not running
    obey(collector.ended())
    assert not running
    while batch := collector.batch(1):
        out += batch
        obey(collector.handed_over(batch))
    assert out == sent


def test_without_demand_there_is_no_batch() -> None:
    collector = BatchTimer(2)
    collector.add(2)
    assert collector.batch(0) == 0
    assert collector.batch(1) == 2
