"""The window of concurrent work: never more than its limit, in order, and nothing is lost."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.reorder_buffer import ReorderBuffer

CHOICES = st.lists(st.tuples(st.sampled_from(["start", "finish", "take"]), st.integers(0, 99)))


@given(st.integers(1, 6), st.booleans(), st.integers(0, 6), CHOICES)
def test_any_sequence_keeps_the_limit_and_the_order(
    limit: int, ordered: bool, open_: int, choices: list[tuple[str, int]]
) -> None:
    window: ReorderBuffer[int] = ReorderBuffer(limit, ordered=ordered)
    window.open = open_
    running: list[int] = []
    done: set[int] = set()
    taken: list[int] = []
    for what, pick in choices:
        if what == "start" and window.room > 0:
            running.append(window.start())
        elif what == "finish" and running:
            ticket = running.pop(pick % len(running))
            done.add(ticket)
            more = window.finish(ticket, ticket if ticket % 3 else None)
            assert more == (window.room > 0)
        elif what == "take":
            taken += window.take(pick)
        waiting = {t for t in done if t % 3} - set(taken)
        assert window.running == len(running)
        assert set(window.ready) <= waiting
        assert len(running) + len(waiting) <= limit + open_
        if ordered:
            assert taken == sorted(taken)
            assert len(set(taken) | set(window.ready)) == len(taken) + len(window.ready)
        else:
            assert set(window.ready) == waiting
    for ticket in running:
        window.finish(ticket, ticket if ticket % 3 else None)
        done.add(ticket)
    taken += window.take(10**6)
    assert sorted(taken) == sorted(t for t in done if t % 3)
    assert window.empty


def test_results_that_nobody_takes_leave_no_room() -> None:
    window: ReorderBuffer[str] = ReorderBuffer(2, ordered=False)
    first, second = window.start(), window.start()
    assert not window.finish(first, "a")
    assert not window.finish(second, "b")
    window.open = 1
    assert window.room == 1
    assert window.take(1) == ["a"]
    window.open = 0
    assert window.room == 1


def test_behind_an_abandoned_ticket_nothing_is_ready() -> None:
    window: ReorderBuffer[str] = ReorderBuffer(4, ordered=True)
    tickets = [window.start() for _ in range(4)]
    window.finish(tickets[3], "d")
    window.abandon(tickets[2])
    window.finish(tickets[1], "b")
    window.finish(tickets[0], "a")
    assert window.take(9) == ["a", "b"]
    assert window.empty
