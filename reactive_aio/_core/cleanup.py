"""CleanupErrors: what the cleanup of a flow raises, for the consumer that awaits it.

A consumer that awaits the cleanup (a terminal operator, a stream) has a `CleanupErrors`. The
islands and operators of its flow receive it from below when they are subscribed to, since the
cleanup of a source may run after every reference to the consumer is gone (3.13).
"""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

Report = Callable[[], object]
"""Reports an error to the loop's exception handler."""


class Closable(Protocol):
    """A subscription that a consumer closes."""

    def aclose(self) -> Awaitable[object]:
        """Cancel, and wait for the cleanup."""
        ...


@dataclass(slots=True, eq=False)
class CleanupErrors:
    """The errors of the cleanups of one flow, which are kept for its consumer."""

    is_awaited: bool = True
    """Whether the consumer is going to take them: it has not left, and has not taken any."""
    _kept: list[tuple[BaseException, Report]] = field(
        default_factory=list[tuple[BaseException, Report]]
    )

    def add(self, error: BaseException, report: Report) -> None:
        """Keep *error* for the consumer, or *report* it."""
        if self.is_awaited:
            self._kept.append((error, report))
        else:
            report()

    async def wait(self, subscription: Closable) -> None:
        """Close *subscription*, and keep the errors of the cleanup.

        The second cancellation of a consumer ends its wait, and the first does not: whether that
        has begun the wait, and is being handled, or comes meanwhile. When the wait is ended, the
        errors are reported, as they are if closing raises.
        """
        was_cancelled = _is_cancellation(sys.exception())
        self.is_awaited = True
        try:
            try:
                await subscription.aclose()
            except BaseException as error:
                if was_cancelled or not _is_cancellation(error):
                    raise
                await subscription.aclose()
                raise
        except BaseException:
            self.report()
            raise

    def take(self) -> BaseException | None:
        """The error for the consumer to raise: several as a group. Later ones are reported."""
        errors = [error for error, _ in self._kept]
        self.is_awaited = False
        self._kept.clear()
        if len(errors) > 1:
            return BaseExceptionGroup(f"{len(errors)} cleanups failed", errors)
        return errors[0] if errors else None

    def report(self) -> None:
        """The consumer raises something else, or does not wait: report what it has not taken."""
        kept, self._kept = self._kept, []
        self.is_awaited = False
        for _, report in kept:
            report()

    def flush(self) -> None:
        """The flow goes on: report what its consumer would only receive at the end."""
        if self._kept:
            is_awaited = self.is_awaited
            self.report()
            self.is_awaited = is_awaited


def _is_cancellation(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, (Exception, GeneratorExit))


def add_cleanup_error(cleanup: CleanupErrors | None, error: BaseException, report: Report) -> None:
    """Hand over an error that a cleanup raised; without a consumer that waits, *report* it."""
    if cleanup is None:
        report()
    else:
        cleanup.add(error, report)
