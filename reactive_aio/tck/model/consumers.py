"""The consumers: the text of what each does with a flow, and whether it reads it to its end.

``run.deliver`` takes an element out of the flow and returns its value, so that a list of results
does not count as elements that the flow holds.
"""

from .vocabulary import Consumer

__all__ = ("CONSUMERS", "DRAINING", "PAUSING")


def _result(call: str, of_received: str) -> Consumer:
    """One that returns a result, which is that *of_received*."""
    return Consumer(f"assert await {{flow}}.map(run.deliver).{call} == {of_received}")


def _first(call: str, of_received: str) -> Consumer:
    return Consumer(_result(call, of_received).text, is_whole=False)


CONSUMERS: dict[str, Consumer] = {
    "to_list": _result("to_list()", "run.received"),
    "to_dict": _result("to_dict(abs)", "{{x: x for x in run.received}}"),
    "count": _result("count()", "len(run.received)"),
    "sum": _result("sum()", "sum(run.received)"),
    "min": _result("min(default=-1)", "min(run.received, default=-1)"),
    "max": _result("max(default=-1)", "max(run.received, default=-1)"),
    "last": _result("last(default=-1)", "[-1, *run.received][-1]"),
    "reduce": _result("reduce(operator.add, 0)", "sum(run.received)"),
    "run": _result("run()", "None"),
    "first": _first("first(default=-1)", "[*run.received, -1][0]"),
    "element_at": _first("element_at({n}, default=-1)", "[*run.received, *[-1] * 9][{n}]"),
    "any": _first("any(lambda x: x == {n})", "({n} in run.received)"),
    "all": _first("all(lambda x: x != {n})", "({n} not in run.received)"),
    "single": Consumer(
        "with suppress(TooManyElements):\n"
        "        assert await {flow}.map(run.deliver).single(default=-1) == "
        "[*run.received, -1][0]",
        is_whole=False,
    ),
    "for_each": Consumer("assert await {flow}.for_each(run.deliver) == len(run.received)"),
    "for_each: awaits": Consumer("assert await {flow}.for_each(run.arrive) == len(run.received)"),
    "for_each: concurrency": Consumer("assert await run.each({flow}, {n}) == len(run.received)"),
    "for_each: fails": Consumer("await run.each_fails({flow}, {k})", is_whole=False),
    "for_each: concurrency, fails": Consumer(
        "await run.each_fails({flow}, {k}, concurrency={n})", is_whole=False
    ),
    "running: drained": Consumer("await run.drained({flow}, {k}, {m})", is_whole=False),
    "running: calls are drained": Consumer(
        "await run.drained({flow}, {k}, {m}, calls={n})", is_whole=False
    ),
    "to_list: timed out": Consumer("await run.collected_in({flow}, {k})", is_whole=False),
    "running": Consumer(
        "async with {flow}.running(run.deliver) as it:\n"
        "        await it.wait()\n"
        "    assert it.delivered == len(run.received)"
    ),
    "to_queue": Consumer("assert await run.queued({flow}.map(run.deliver)) == run.received"),
    "into": Consumer(
        "assert await {flow}.map(run.deliver).into(r.UnicastProcessor({n})).to_list() "
        "== run.received",
        waits=False,
    ),
    "async for": Consumer("await run.iterate({flow})"),
    "async for: break": Consumer(
        "await run.iterate({flow}, leave_after={n})", is_whole=False, waits=False
    ),
    "stream": Consumer("await run.read({flow}, None)"),
    "stream: prefetch": Consumer("await run.read({flow}, {n})"),
    "stream: break": Consumer("await run.read({flow}, {m}, leave_after={n})", is_whole=False),
    "subscribe": Consumer("await run.probe({flow}, 2**63 - 1)", waits=False),
    "subscribe: batches": Consumer("await run.probe({flow}, {n}, {m})", waits=False),
    "subscribe: later": Consumer("await run.probe({flow}, {n}, {m}, later=0.1)", waits=False),
    "subscribe: async def": Consumer("await run.probe_async({flow}, {n}, 1)", waits=False),
    "subscribe: cancels": Consumer(
        "await run.probe({flow}, {m}, cancel_after={n})", is_whole=False, waits=False
    ),
    "subscribe: async def, cancels": Consumer(
        "await run.probe_async({flow}, {m}, cancel_after={n})", is_whole=False, waits=False
    ),
    "subscribe: cancels at a time": Consumer(
        "await run.probe({flow}, {n}, {m}, later=0.01, cancel_at=0.{k}5)",
        is_whole=False,
        waits=False,
    ),
    "cancelled": Consumer("await run.cancelled({flow}.for_each(run.arrive), {k})", is_whole=False),
    "cancelled: later": Consumer(
        "await run.cancelled({flow}.for_each(run.deliver), {n}.{k}5)", is_whole=False
    ),
    "cancelled: async for": Consumer(
        "await run.cancelled(run.iterate({flow}), {k}.1)", is_whole=False, waits=False
    ),
    "timed out": Consumer(
        "await run.timed_out({flow}.for_each(run.arrive_late), {n}00)", is_whole=False
    ),
}

DRAINING = ("running: drained", "running: calls are drained")
"""Those that compare a report with the elements that `do_on_discard` has received."""

PAUSING = ("subscribe: later", "subscribe: cancels at a time")
"""Those that let upstream run as far ahead as it may, and see what it holds then."""
