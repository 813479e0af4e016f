"""The buffer of concurrent work: never more than its limit, in order, and nothing is lost."""

from hypothesis import given, strategies as st

from reactive_aio._core.queues.reorder_buffer import ReorderBuffer

ACTS = ["start", "finish", "exchange", "go on", "give back", "take", "demand"]
CHOICES = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 99)))


def result_of(number: int) -> int | None:
    return number if number % 3 else None


def go_on(buffer: ReorderBuffer[int], ticket: int, result: int) -> int:
    """What a pool does by itself for most elements; -1 if it has to call `exchange`."""
    count = len(buffer.ready)
    if count < buffer.most_ready_alone:
        buffer.ready.append(result)
        return ticket
    if count >= buffer.most_ready or ticket != buffer.due:
        return -1
    buffer.ready.append(result)
    buffer.due = ticket + 1
    buffer.tickets += 1
    return buffer.tickets - 1


@given(st.integers(1, 6), st.booleans(), st.integers(0, 6), CHOICES)
def test_any_sequence_keeps_the_limit_and_the_order(
    limit: int, ordered: bool, open_: int, choices: list[tuple[str, int]]
) -> None:
    buffer: ReorderBuffer[int] = ReorderBuffer(limit, ordered=ordered)
    buffer.open_demand = open_
    running: list[tuple[int, int]] = []  # tickets, and the numbers of their work
    started = 0
    done: set[int] = set()
    taken: list[int] = []
    most = open_
    for what, pick in choices:
        if what == "start" and buffer.room > 0:
            running.append((buffer.start(), started))
            started += 1
        elif what == "finish" and running:
            ticket, number = running.pop(pick % len(running))
            done.add(number)
            more = buffer.finish(ticket, result_of(number))
            assert more == (buffer.room > 0)
        elif what in ("exchange", "go on") and running:
            at = pick % len(running)
            ticket, number = running[at]
            result, following = result_of(number), -1
            if what == "exchange":
                following = buffer.exchange(ticket, result)
                assert following >= 0 or buffer.room <= 0
            elif result is None or (following := go_on(buffer, ticket, result)) < 0:
                continue
            done.add(number)
            del running[at]
            if following >= 0:
                running.append((following, started))
                started += 1
        elif what == "give back" and running and running[-1][0] == buffer.tickets - 1:
            buffer.give_back(running.pop()[0])
            started -= 1
        elif what == "demand":
            buffer.open_demand = pick % 7
            most = max(most, buffer.open_demand)
        elif what == "take":
            taken += buffer.take(pick)
        waiting = {number for number in done if number % 3} - set(taken)
        assert buffer.running == len(running)
        assert buffer.started == started
        assert set(buffer.ready) <= waiting
        assert len(running) + len(waiting) <= limit + most
        assert buffer.room <= limit - len(running)
        if ordered:
            assert taken == sorted(taken)
            assert len(set(taken) | set(buffer.ready)) == len(taken) + len(buffer.ready)
        else:
            assert set(buffer.ready) == waiting
    for ticket, number in running:
        buffer.finish(ticket, result_of(number))
        done.add(number)
    taken += buffer.take(10**6)
    assert sorted(taken) == sorted(number for number in done if number % 3)
    assert (buffer.running, len(buffer._early), len(buffer.ready)) == (0, 0, 0)


def test_no_ticket_is_issued_once_it_is_closed() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer(4, ordered=True)
    first, second = buffer.start(), buffer.start()
    buffer.close()
    assert buffer.room == 0
    assert (buffer.most_ready, buffer.most_ready_alone) == (0, 0)
    assert buffer.exchange(first, "a") == -1
    assert not buffer.finish(second, "b")
    assert buffer.take(9) == ["a", "b"]


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


def test_every_result_is_removed_those_that_wait_for_an_earlier_one_too() -> None:
    buffer: ReorderBuffer[str] = ReorderBuffer(4, ordered=True)
    tickets = [buffer.start() for _ in range(4)]
    for ticket, result in ((0, "a"), (3, "d"), (2, None)):
        buffer.finish(tickets[ticket], result)
    assert buffer.clear() == ["a", "d"]
    assert (buffer.running, buffer.held) == (1, 0)
