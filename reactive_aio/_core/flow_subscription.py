"""FlowSubscription: what a subscription of this package can do beyond `request` and `cancel`."""

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from .compiler.chain import Downstream
    from .observation.awaited import Wait


_LONG: Final = 8  # telling a few takes as long as looking at them


class Reported:
    """What a subscription does, for reports. Override what is not so."""

    __slots__ = ()

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

    def call_waits(self) -> "Iterable[Wait]":
        """What these calls wait for, as far as that is known: that of the oldest element first."""
        return ()

    @property
    def own_wait(self) -> "Wait | None":
        """What it waits for besides its upstreams and calls, before it goes on."""
        return None

    @property
    def held_back_by(self) -> "Downstream[Any] | None":
        """The one that takes its elements, or some of them, and has no room for the next."""
        return None

    @property
    def shared_source(self) -> "FlowSubscription | None":
        """What it receives elements from, if others do as well: that is in none of its parts."""
        return None

    @property
    def retries(self) -> int:
        """How often it has subscribed to its source again."""
        return 0

    @property
    def upstreams(self) -> "Sequence[FlowSubscription]":
        """The subscriptions of its upstreams."""
        return ()


class ReadAhead:
    """What a reader has to know before it reads ahead. Override what is not so."""

    __slots__ = ()

    @property
    def flushes_each_element(self) -> bool:
        """Whether it cannot know which element of a batch is the last, and flushes after each."""
        return False

    @property
    def is_one_by_one(self) -> bool:
        """Whether a consumer must not read ahead; an operator may know it only at subscription."""
        return False

    @property
    def is_lossy(self) -> bool | None:
        """Whether what waits is dropped or replaced by what is newer, so that it may wait nowhere
        else: nothing is read ahead, even if the consumer asks for that. None: what it passes on
        decides that."""
        return False

    @property
    def passes_on(self) -> "FlowSubscription | None":
        """The upstream whose elements it passes on as they are requested; None before there is
        one."""
        return None

    @property
    def known_lossy(self) -> bool | None:
        """What was found about the upstream that it passes on, if that still holds."""
        return None

    def note_lossy(self, is_lossy: bool) -> None:
        """Note what was found about the upstream that it passes on."""


class Cleaned:
    """The cleanup of a subscription, after its end or a cancellation.

    `FlowSubscription.aclose` waits for it, and for that of all above it.
    """

    __slots__ = ()

    @property
    def is_settled(self) -> bool:
        """Whether its own cleanup is over, whatever those above it do."""
        return True

    async def settle(self) -> None:
        """Wait until it is settled; not for a task in which this is called."""

    @property
    def closing(self) -> "Sequence[FlowSubscription]":
        """The subscriptions above it that have ended or were cancelled, and may still clean up."""
        return ()

    def waiting_failure(self) -> BaseException | None:
        """What it fails with when the elements that it holds are processed, if it has failed."""
        return None

    def on_clean(self) -> None:
        """What `closing` has returned has cleaned up, and need not be returned again."""


class FlowSubscription(Reported, ReadAhead, Cleaned):
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

    def leave(self) -> None:
        """Cancel, since what follows has completed: the flows that it was given may still be read.

        What follows a `cancel` has failed or was cancelled itself, so that nobody will read them.
        """
        self.cancel()

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

    @property
    def is_clean(self) -> bool:
        """Whether `aclose` would return at once. A class with an `aclose` of its own says it."""
        above: list[FlowSubscription] = [self]
        for each in above:  # it grows meanwhile: no recursion, for flows of any depth
            if type(each).aclose is not FlowSubscription.aclose:
                if each is self or not each.is_clean:
                    return False
            elif not each.is_settled:
                return False
            else:
                above += each.closing
        if len(above) > _LONG:
            for each in above:
                each.on_clean()  # so that *n* operators that end are not looked at *n* times each
        return True

    async def aclose(self) -> None:
        """Cancel, and wait until the source and everything above it have cleaned up.

        What an `aclose` above raises is raised when all others have been waited for.
        """
        self.cancel()
        above: list[FlowSubscription] = [self]
        visited: list[FlowSubscription] = []
        errors: list[Exception] = []
        while above:
            each = above.pop()
            if each is not self and type(each).aclose is not FlowSubscription.aclose:
                try:
                    await each.aclose()
                except Exception as error:
                    errors.append(error)
                continue
            await each.settle()
            above += each.closing
            visited.append(each)
        for each in visited:
            each.on_clean()
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("cleanups failed", errors)


class _Unknown(FlowSubscription):
    """Stands for a subscription of a foreign publisher, which says nothing about itself."""

    __slots__ = ()


FOREIGN: Final = _Unknown()


class Links:
    """Which subscription passes on which other one, in all flows."""

    state: ClassVar[object] = object()
    """Another object after each change."""

    @classmethod
    def note_change(cls) -> None:
        """A subscription passes on another one than before."""
        cls.state = object()


def is_read_one_by_one(subscription: FlowSubscription) -> bool:
    """Whether a consumer of *subscription* must not read ahead."""
    return any(each.is_one_by_one for each in _passed_on(subscription))


def drops_what_waits(subscription: FlowSubscription) -> bool:
    """Whether what waits at *subscription* is dropped or replaced; also while nobody knows."""
    # Each operator of a flow asks at each request, and a flow may be made of thousands, which come
    # one after another: so they remember the answer, and are not all looked at each time.
    undecided: list[FlowSubscription] = []
    for each in _passed_on(subscription):
        lossy = each.known_lossy if (own := each.is_lossy) is None else own
        if lossy is not None:
            for before in undecided:
                before.note_lossy(lossy)
            return lossy
        undecided.append(each)
    for before in undecided:
        before.note_lossy(True)
    return True


def _passed_on(subscription: FlowSubscription) -> "Iterator[FlowSubscription]":
    """*subscription*, and those that it passes on: no recursion, for flows of any depth."""
    each: FlowSubscription | None = subscription
    while each is not None:
        yield each
        each = each.passes_on
