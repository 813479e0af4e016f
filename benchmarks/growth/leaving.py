"""What does it cost a subscriber to leave a hot flow that many others receive?"""

from reactive_aio import Flow, MulticastProcessor, never

from ..memory.idle import Waiting
from .sizes import growth, nanoseconds

SIZES = (10, 100, 1_000, 10_000)


def subscribers_of(hot: Flow[int], count: int) -> list[Waiting]:
    subscribers = [Waiting() for _ in range(count)]
    for each in subscribers:
        hot.subscribe(each)
    return subscribers


async def leave(subscribers: list[Waiting]) -> None:
    """Cancel one subscription after the other."""
    for each in subscribers:
        each.close()


async def processor(count: int, _: int) -> float:
    hub = MulticastProcessor[int](64)
    subscribers = subscribers_of(hub, count)
    never().subscribe(hub)
    return await nanoseconds(leave(subscribers), count)


async def shared(count: int, _: int) -> float:
    return await nanoseconds(leave(subscribers_of(never().share(), count)), count)


leaving_a_processor = growth(
    "Subscribers that leave a `MulticastProcessor` one by one",
    "leaving a `MulticastProcessor` as one of {n}",
    SIZES,
    processor,
)
leaving_share = growth(
    "Subscribers that leave `share` one by one", "leaving `share` as one of {n}", SIZES, shared
)
