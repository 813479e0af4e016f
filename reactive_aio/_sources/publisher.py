"""Foreign publishers as sources."""

from typing import TYPE_CHECKING, TypeVar, cast

from ..coerce import from_foreign
from ..stage import Fluent, describe

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Publisher

__all__ = ("from_publisher",)

T = TypeVar("T")


def from_publisher(publisher: "Publisher[T]") -> "Flow[T]":
    """Read any object with ``subscribe`` as a flow, guarded against its rule violations.

    ::

        from_publisher(foreign("a", "b"))
        a--b--|

    A flow is returned unchanged. Every subscription subscribes to the publisher at once, in the
    subscriber's context. Signals from other threads are moved to the loop. A publisher that
    violates a rule is cancelled, and the flow fails with an error that names the rule: an element
    before ``on_subscribe`` (1.9), a second ``on_subscribe`` (2.12), more elements
    than were requested (1.1), None as an element (2.13, raised to the publisher as well), a
    ``subscribe`` or ``request`` that raises (1.9, 3.16). Signals after the terminal one are ignored
    (1.7), a ``cancel`` that raises is reported to the loop's exception handler (3.15).

    Demand: passed through, at most 256 at a time.
    Completes: when the publisher completes.
    Fails: when the publisher fails, or violates a rule.
    Cancels: the publisher is cancelled.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.3, 1.7, 1.9, 2.5, 2.12, 2.13, 3.16
    """
    if isinstance(publisher, Fluent):
        return cast("Flow[T]", publisher)
    given = cast("object", publisher)
    if not callable(getattr(given, "subscribe", None)):
        raise TypeError(
            f"from_publisher: {describe(given)} ({type(given).__name__}) is not a publisher: it "
            "has no subscribe(); for iterables use from_iterable or from_aiter"
        )
    return from_foreign(publisher)
