"""The buffer of concurrent work: never more than its limit, in order, and nothing is lost."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.reorder_buffer import ReorderBuffer

ACTS = ["start", "finish", "exchange", "give back", "take", "demand"]
CHOICES = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 99)))


@given(st.integers(1, 6), st.booleans(), st.integers(0, 6), CHOICES)
def test_any_sequence_keeps_the_limit_and_the_order(
    limit: int, ordered: bool, open_: int, choices: list[tuple[str, int]]
) -> None:
    buffer: ReorderBuffer[int] = ReorderBuffer(limit, ordered=ordered)
    buffer.open_demand = open_
    running: list[int] = []
    done: set[int] = set()
    taken: list[int] = []
    most = open_
    for what, pick in choices:
        if what == "start" and buffer.room > 0:
            running.append(buffer.start())
        elif what == "finish" and running:
            ticket = running.pop(pick % len(running))
            done.add(ticket)
            more = buffer.finish(ticket, ticket if ticket % 3 else None)
            assert more == (buffer.room > 0)
        elif what == "exchange" and running:
            ticket = running.pop(pick % len(running))
            done.add(ticket)
            following = buffer.exchange(ticket, ticket if ticket % 3 else None)
            if following >= 0:
                running.append(following)
            else:
                assert buffer.room <= 0
        elif what == "give back" and running and running[-1] == buffer._tickets - 1:
            buffer.give_back(running.pop())
        elif what == "demand":
            buffer.open_demand = pick % 7
            most = max(most, buffer.open_demand)
        elif what == "take":
            taken += buffer.take(pick)
        waiting = {t for t in done if t % 3} - set(taken)
        assert buffer.running == len(running)
        assert set(buffer.ready) <= waiting
        assert len(running) + len(waiting) <= limit + most
        assert buffer.room <= limit - len(running)
        if ordered:
            assert taken == sorted(taken)
            assert len(set(taken) | set(buffer.ready)) == len(taken) + len(buffer.ready)
        else:
            assert set(buffer.ready) == waiting
    for ticket in running:
        buffer.finish(ticket, ticket if ticket % 3 else None)
        done.add(ticket)
    taken += buffer.take(10**6)
    assert sorted(taken) == sorted(t for t in done if t % 3)
    assert (buffer.running, len(buffer._early), len(buffer.ready)) == (0, 0, 0)


def test_results_that_are_not_taken_leave_no_room() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer(2, ordered=False)
    first, second = buffer.start(), buffer.start()
    assert not buffer.finish(first, "a")
    assert not buffer.finish(second, "b")
    buffer.open_demand = 1
    assert buffer.room == 1
    assert buffer.take(1) == ["a"]
    buffer.open_demand = 0
    assert buffer.room == 1


def test_no_result_is_ready_after_an_abandoned_ticket() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer(4, ordered=True)
    tickets = [buffer.start() for _ in range(4)]
    buffer.finish(tickets[3], "d")
    buffer.abandon(tickets[2])
    buffer.finish(tickets[1], "b")
    buffer.finish(tickets[0], "a")
    assert buffer.take(9) == ["a", "b"]
    assert (buffer.running, len(buffer._early), len(buffer.ready)) == (0, 0, 0)
