"""How a `DeliveryFlow` begins: with a source whose elements are acknowledged, or with a log."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, TypeVar, overload

from .._shared.coerce import Source, to_flow
from ..stage import Duration, require_callable, require_int, require_sync_callable, to_seconds
from .delivery import Delivery
from .delivery_flow import DeliveryFlow
from .head import Head, HeadOptions, MakeSide
from .source_sides import EachDelivery, EachElement, LogCommits, LogOptions, ManyElements

__all__ = ("deliveries", "log_deliveries")

T = TypeVar("T")
P = TypeVar("P")
K = TypeVar("K", bound=Hashable)

LIMIT: Final = 256


@overload
def deliveries(
    source: Source[Delivery[T]],
    *,
    limit: int = ...,
    ack_concurrency: int = ...,
    ack_timeout: Duration = ...,
) -> DeliveryFlow[T]: ...
@overload
def deliveries(
    source: Source[T],
    ack: Callable[[T], object],
    nack: Callable[[T, Exception], object] | None = None,
    *,
    limit: int = ...,
    ack_concurrency: int = ...,
    ack_timeout: Duration = ...,
) -> DeliveryFlow[T]: ...
@overload
def deliveries(
    source: Source[T],
    *,
    ack_many: Callable[[list[T]], object],
    nack: Callable[[T, Exception], object] | None = None,
    limit: int = ...,
    ack_timeout: Duration = ...,
) -> DeliveryFlow[T]: ...
def deliveries(
    source: Source[Any],
    ack: Callable[[Any], object] | None = None,
    nack: Callable[[Any, Exception], object] | None = None,
    *,
    ack_many: Callable[[list[Any]], object] | None = None,
    limit: int = LIMIT,
    ack_concurrency: int = 1,
    ack_timeout: Duration = 30.0,
) -> DeliveryFlow[Any]:
    """Acknowledge each element of *source* when its work is done, and only then.

    The elements are `Delivery` objects; or any others, with the functions *ack* (called with the
    element when its work is done) and *nack* (called with the element and an error when it is not,
    if the source takes elements back). These may be coroutine functions: they are called in the
    order of the acknowledgements, *ack_concurrency* at a time, and awaited for at most
    *ack_timeout*. If one of them raises, the flow fails.

    Where the source acknowledges several elements with one call, give *ack_many* in place of *ack*:
    it is called with a list of all elements whose work was done since the call before, as soon as
    that has returned. So a list is as long as the source is slow, and at most *limit*.

    Demand: passed through, while fewer than *limit* elements are held.
    Completes: when the source has completed and no element is held.
    Fails: when the source fails, once no element is held; when *ack*, *ack_many* or *nack* raises,
        or takes longer than *ack_timeout*.
    Cancels: the source, when the subscriber cancels; elements whose work is not done are nacked,
        those that the source holds as `Delivery` objects included, and ``aclose`` waits for that.
    Holds: *limit* elements: those whose *ack* or *nack* has not returned.
    Rules: 1.1, 1.7
    """
    make: MakeSide
    if ack is None and ack_many is None and nack is not None:
        raise TypeError("deliveries: nack is given without ack or ack_many; give both")
    if nack is not None:
        require_callable("deliveries", "nack", nack, takes=2)
    if ack_many is not None:
        require_callable("deliveries", "ack_many", ack_many, takes=1)
        _require_alone(ack, ack_concurrency)
        make = partial(ManyElements, ack_many=ack_many, nack=nack)
    elif ack is not None:
        require_callable("deliveries", "ack", ack, takes=1)
        make = partial(EachElement, ack=ack, nack=nack)
    else:
        make = EachDelivery
    return _started("deliveries", source, make, limit, ack_concurrency, ack_timeout)


def _require_alone(ack: object, ack_concurrency: int) -> None:
    if ack is not None:
        raise TypeError("deliveries: ack and ack_many are both given; give one of them")
    if ack_concurrency != 1:
        raise TypeError("deliveries: one call of ack_many follows another; omit ack_concurrency")


def log_deliveries(
    source: Source[T],
    commit: Callable[[dict[K, P]], object],
    *,
    position: Callable[[T], P],
    partition: Callable[[T], K],
    generation: Callable[[T], Hashable] | None = None,
    every: int = 100,
    within: Duration = 5.0,
    limit: int = LIMIT,
    ack_timeout: Duration = 30.0,
) -> DeliveryFlow[T]:
    """Read a log, and commit its positions in order, whatever the order of acknowledgements.

    *commit* is called with the position of each partition up to which all elements are
    acknowledged, after *every* elements or *within* a time, and at the end of the flow. It may be a
    coroutine function; one call follows another, each awaited for at most *ack_timeout*. The
    elements of a partition come in the order of the log: positions are not compared.

    Where partitions move between readers, give *generation*: of an element, a value that is another
    one each time its partition is assigned to this reader, or read from another position on. What
    was read in an earlier generation is not committed any more: the partition may have come back
    from a reader that has committed further, and a commit would take it back.

    A log takes no element back. An element that fails ends the flow, and is delivered again when
    the log is read from the committed position; `DeliveryFlow.nack_on_error` tries again at once,
    and keeps an element that never succeeds from stopping the flow.

    Demand: passed through, while fewer than *limit* elements are held.
    Completes: when the source has completed, no element is held, and all positions are committed.
    Fails: when the source fails, once no element is held; when *commit*, *position* or *partition*
        raises.
    Cancels: the source, when the subscriber cancels; what is done is committed, and ``aclose``
        waits for that.
    Holds: *limit* elements: those that are not acknowledged, and those after them in their
        partition.
    Rules: 1.1, 1.7
    """
    remedy = "read it from the element."
    require_callable("log_deliveries", "commit", commit, takes=1)
    require_sync_callable("log_deliveries", "position", position, remedy, takes=1)
    require_sync_callable("log_deliveries", "partition", partition, remedy, takes=1)
    if generation is not None:
        require_sync_callable("log_deliveries", "generation", generation, remedy, takes=1)
    require_int("log_deliveries", "every", every, least=1)
    seconds = to_seconds(within, "log_deliveries: within")
    options = LogOptions(commit, position, partition, generation, every, seconds)

    def make(head: Head) -> LogCommits:
        return LogCommits(head, head, options)

    return _started("log_deliveries", source, make, limit, 1, ack_timeout)


def _started(
    name: str,
    source: Source[Any],
    make: MakeSide,
    limit: int,
    ack_concurrency: int,
    ack_timeout: Duration,
) -> DeliveryFlow[Any]:
    require_int(name, "limit", limit, least=1)
    require_int(name, "ack_concurrency", ack_concurrency, least=1)
    seconds = to_seconds(ack_timeout, f"{name}: ack_timeout")
    options = HeadOptions(f"{name}(limit={limit})", make, limit, ack_concurrency, seconds)
    return DeliveryFlow(to_flow(source, name=name), options)
