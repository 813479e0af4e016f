"""Sources and operators between which an operator of a user is put.

`tests/model` has the whole vocabulary of the package; it begins with these rows.
"""

from collections.abc import Iterable
from typing import Final

from .expected import Parameters, added, each, whole
from .vocabulary import Operator, Source

__all__ = (
    "BEHIND_ANOTHER",
    "HOLDING_NOTHING",
    "LEAVES_OUT",
    "OPERATORS",
    "SOURCES",
    "TAKE",
    "divided",
    "double",
)


def divided(value: int, parameters: Parameters) -> Iterable[int]:
    """The value, unless n divides it."""
    return [value] if value % parameters["n"] else []


def double(value: int, _: Parameters) -> Iterable[int]:
    """The value twice as large."""
    return [value * 2]


TAKE: Final = whole(
    lambda values, p: values[: p["n"]],
    fails=lambda values, p: False if len(values) >= p["n"] else None,
)
SOURCES: Final[dict[str, Source]] = {
    "from_iterable": Source("r.from_iterable(run.numbers({n}))"),
    "from_iterable: fails": Source("r.from_iterable(run.numbers({n}, fails=True))", fails=True),
    "range": Source("r.range({n}).map(run.token)"),
    "from_aiter": Source("r.from_aiter(lambda: run.steps({n}, connection=0))"),
    "from_aiter: slow": Source("r.from_aiter(lambda: run.steps({n}, every=0.1, connection=0))"),
    "from_aiter: fails": Source(
        "r.from_aiter(lambda: run.steps({n}, fails=True, connection=0))", fails=True
    ),
    "from_aiter: a cleanup fails": Source(
        "r.from_aiter(lambda: run.with_a_failing_cleanup({n}))",
        fails=None,
        errors=("CleanupError",),
    ),
    "from_aiter: at times": Source(
        "r.from_aiter(lambda: run.steps({n}, every=run.pauses({k}), connection=0))"
    ),
    "from_aiter: fails at a time": Source(
        "r.from_aiter(lambda: run.steps({n}, every=run.pauses({k}), fails=True, connection=0))",
        fails=True,
    ),
    "from_publisher": Source("r.from_publisher(run.publisher({n}))"),
    "from_publisher: in callbacks": Source("r.from_publisher(run.publisher({n}, every=0))"),
    "from_publisher: slow": Source("r.from_publisher(run.publisher({n}, every=0.1))"),
    "from_publisher: fails": Source(
        "r.from_publisher(run.publisher({n}, every=0.01, fails=True))", fails=True
    ),
    "using: asynchronous": Source(
        "r.using(run.async_resource(), "
        "lambda _: r.from_aiter(lambda: run.steps({n}, connection=0)))"
    ),
}
HOLDING_NOTHING: Final = ("from_iterable", "range", "from_aiter")
"""Sources that hold no elements, so that the bound of a flow is that of its operators."""
LEAVES_OUT: Final = "it leaves elements out on purpose"
BEHIND_ANOTHER: Final = "what reads the source is another consumer, which tells nobody"
OPERATORS: Final[dict[str, Operator]] = {
    "map": Operator("{flow}.map(run.doubled)", each(double)),
    "filter": Operator("{flow}.filter(run.keeps({n}))", each(divided)),
    "take": Operator("{flow}.take({n})", TAKE, discards=True),
    "start_with": Operator(
        "{flow}.start_with({v}).map(run.tokenized)", added(lambda p: [p["v"]], after=False)
    ),
    "take_last": Operator(
        "{flow}.take_last({n})",
        whole(lambda values, p: values[-p["n"] :]),
        unaccounted=LEAVES_OUT,
        loses_on_failure=True,
    ),
    "map_async": Operator("{flow}.map_async(run.soon)"),
    "map_async: ordered": Operator("{flow}.map_async(run.slow, concurrency={n})"),
    "boundary": Operator("{flow}.boundary({n})"),
    "buffer": Operator(
        "{flow}.buffer({n}).flat_map(run.copies, concurrency={m})", loses_on_failure=True
    ),
    "flat_map: one after another": Operator(
        "{flow}.flat_map(lambda x: r.just(x).boundary(1), concurrency=1, prefetch={m})",
        loses_on_failure=True,
    ),
    "merge": Operator("r.merge({flow}, r.empty(), prefetch={m})", loses_on_failure=True),
    "limit_rate": Operator("{flow}.limit_rate({n})"),
    "share": Operator("{flow}.share(capacity={n})", detaches=True),
    "timeout": Operator("{flow}.timeout(10**6)"),
    "from_publisher": Operator(
        "r.from_publisher(run.relay({flow}))", unaccounted=BEHIND_ANOTHER, detaches=True
    ),
    "defer": Operator("r.defer(lambda: run.inner({flow}))"),
}
