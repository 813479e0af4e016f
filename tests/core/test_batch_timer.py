"""The timer of batches: full or due, one timer for the oldest, never more than its size."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.batch_timer import BatchTimer, TimerAction

CHOICES = st.lists(
    st.tuples(st.sampled_from(["arrive", "tick", "request", "cut"]), st.integers(1, 5))
)


@given(st.integers(1, 5), CHOICES)
def test_any_sequence_of_events_bounds_size_and_age_of_batches(
    size: int, choices: list[tuple[str, int]]
) -> None:
    timer = BatchTimer(size)
    running = False
    demand = sent = out = 0

    def obey(action: TimerAction) -> None:
        nonlocal running
        if action is not TimerAction.KEEP:
            assert running == (action is TimerAction.STOP)
            running = action is TimerAction.START

    for what, count in choices:
        if what == "arrive" and timer.held < size:
            count = min(count, size - timer.held)
            sent += count
            obey(timer.add(count))
        elif what == "tick" and running:
            running = False
            obey(timer.fired())
            assert not timer.held or not demand or timer.batch_size(demand)
        elif what == "request":
            demand += 1
        elif what == "cut":
            obey(timer.cut())
            assert not timer.open
        while batch := timer.batch_size(demand):
            assert 1 <= batch <= size
            out, demand = out + batch, demand - 1
            obey(timer.emitted())
        assert timer.held == sent - out
        # What waits is either due and unasked for, or a timer runs that will make it so.
        if 0 < timer.held < size:
            assert running or not demand
        if not timer.held:
            assert not running
    obey(timer.end())
    assert not running
    while batch := timer.batch_size(1):
        out += batch
        obey(timer.emitted())
    assert out == sent


def test_without_demand_there_is_no_batch() -> None:
    timer = BatchTimer(2)
    timer.add(2)
    assert timer.batch_size(0) == 0
    assert timer.batch_size(1) == 2
