"""FlowSubscription: what a subscription of this package can do beyond `request` and `cancel`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class FlowSubscription:
    """The base of every subscription that a source or an operator of this package hands out.

    `request` and `cancel` are the specification's. The other methods have defaults that suit a
    source which neither counts processed elements nor cleans up asynchronously.
    """

    # Not an ABC: every subscription is tested by isinstance, which takes an ABC five times as long.
    __slots__ = ()

    def request(self, n: int, /) -> None:
        """Add *n* to the demand (rules 3.8 and 3.9)."""
        raise NotImplementedError(f"{type(self).__name__} does not define request(n)")

    def cancel(self) -> None:
        """Stop sending signals and release the source (rule 3.12)."""
        raise NotImplementedError(f"{type(self).__name__} does not define cancel()")

    def processed(self) -> None:
        """Every element sent so far has been processed; the demand stays as it is."""

    def finished(self) -> None:
        """It has ended, and everything made of its elements has been processed.

        Whoever reads this subscription says so, once.
        """
        told: list[FlowSubscription] = [self]
        while told:  # no recursion, for flows of any depth
            told += told.pop().note_finished()

    def note_finished(self) -> "Sequence[FlowSubscription]":
        """Note that it is finished; return the subscriptions above it that are finished as well."""
        return ()

    def pull(self) -> None:
        """Process the elements that were left to a subscriber that pulls."""

    def stop_source(self) -> bool:
        """The run is drained: read no more, and complete after the elements that were read.

        Return False for a source that holds none: it is then cancelled, and completed for it.
        """
        return False

    # -- what it does, for reports ----------------------------------------------------------------
    @property
    def held(self) -> int:
        """How many elements it holds now."""
        return 0

    def oldest(self, now: float, waiting: int) -> float | None:
        """For how many seconds, at least, its oldest element is held; None if that is not known.

        *waiting* of the elements that it has pushed wait in front of the island. Each call is a
        look, from which the following ones measure.
        """
        return None

    @property
    def calls(self) -> int:
        """How many calls of a function of the user run in tasks of its own."""
        return 0

    def awaited_lines(self) -> "Iterable[str]":
        """Where these calls are suspended."""
        return ()

    @property
    def retries(self) -> int:
        """How often it has subscribed to its source again."""
        return 0

    @property
    def upstreams(self) -> "Sequence[FlowSubscription]":
        """The subscriptions of its upstreams."""
        return ()

    # -- what upstream and downstream need to know ------------------------------------------------
    @property
    def flushes_each_element(self) -> bool:
        """Whether it cannot know which element of a batch is the last, and flushes after each."""
        return False

    @property
    def is_one_by_one(self) -> bool:
        """Whether a consumer must not read ahead; an operator may know it only at subscription."""
        return False

    @property
    def is_clean(self) -> bool:
        """Whether `aclose` would return at once."""
        kind = type(self)
        return kind.aclose is FlowSubscription.aclose and kind.settle is FlowSubscription.settle

    async def aclose(self) -> None:
        """Cancel, and wait until the source and everything above it have cleaned up."""
        closing = [*await self.settle()]
        while closing:  # no recursion, for flows of any depth
            each = closing.pop()
            if type(each).aclose is FlowSubscription.aclose:
                closing += await each.settle()
            else:
                await each.aclose()

    async def settle(self) -> "Sequence[FlowSubscription]":
        """Cancel, and wait until this subscription itself has cleaned up.

        Return the subscriptions above it, whose cleanup is still to be waited for.
        """
        self.cancel()
        return ()
