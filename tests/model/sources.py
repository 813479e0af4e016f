"""The sources: the text of a call, the values it emits, and whether it fails after them."""

from typing import Final

from reactive_aio.tck.model import neighbours
from reactive_aio.tck.model.vocabulary import Source

__all__ = ("EXCEPTIONS", "HOLDING_NOTHING", "SOURCES")


CHILD_ERRORS: Final = ("ChildError", "Interrupted")
"""A task group that fails also cancels the task of the flow."""
SOURCES: dict[str, Source] = {
    **neighbours.SOURCES,
    "just": Source("r.just(*builtins.range({n})).map(run.token)"),
    "empty": Source("r.empty()", lambda _: ()),
    "error": Source("r.error(run.error)", lambda _: (), fails=True),
    "never": Source("r.never().timeout(1, fallback=run.numbers({n}))"),
    "never: ends": Source("r.concat(run.numbers({n}), r.never()).take_until(r.timer(100))"),
    "generate": Source("r.generate(lambda x: (x, x + 1) if x < {n} else None, 0).map(run.token)"),
    "generate: without end": Source("r.generate(lambda x: (x, x + 1), 0).map(run.token).take({n})"),
    "defer": Source("r.defer(lambda: run.numbers({n}))"),
    "from_callable": Source("r.from_callable(lambda: run.token(0))", lambda _: (0,)),
    "from_aiter: in a task group": Source("r.from_aiter(lambda: run.in_a_task_group({n}))"),
    "from_aiter: in an anyio task group": Source(
        "r.from_aiter(lambda: run.in_an_anyio_task_group({n}))"
    ),
    "from_aiter: a child fails": Source(
        "r.from_aiter(lambda: run.in_a_task_group({n}, fails_at=4))",
        fails=None,
        errors=CHILD_ERRORS,
    ),
    "from_awaitable": Source("r.from_awaitable(run.one)", lambda _: (0,)),
    "from_queue": Source(
        "r.defer(lambda: r.from_queue(run.queue({n}), end=-1).map(run.token))",
        lambda parameters: range(parameters["n"]),
    ),
    "from_anyio": Source("r.defer(lambda: r.from_anyio(run.stream({n})).map(run.token))"),
    "create": Source("r.create(run.emit({n}), overflow='wait', capacity=2)"),
    "create: slow": Source("r.create(run.emit({n}, 0.1), capacity=100)"),
    "using": Source("r.using(run.resource, lambda _: run.numbers({n}))"),
    "from_thread": Source("r.from_thread(lambda: run.numbers({n}), chunk=2)"),
    "from_lines": Source(
        "r.from_lines(run.three_lines).enumerate().map(lambda line: run.token(line[0]))",
        lambda _: range(3),
    ),
    "interval": Source("r.interval(0.1).take({n}).enumerate().map(lambda x: run.token(x[0]))"),
    "timer": Source("r.timer(0.1).map(run.token)", lambda _: (0,)),
    "retry": Source(
        "r.defer(lambda: run.flaky({n}).retry(3))",
        lambda parameters: [*range(parameters["n"])] * 3,
    ),
}

HOLDING_NOTHING = ("from_iterable", "just", "range", "generate", "from_aiter")
"""Sources that hold no elements, so that the bound of a flow is that of its operators."""

EXCEPTIONS = {
    "from_process": "its program has no part in virtual time",
}
"""The sources that no random pipeline contains, and why."""
