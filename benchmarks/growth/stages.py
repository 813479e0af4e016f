"""What does it cost to compile and subscribe to a chain of n stages?"""

from itertools import count as counting
from random import Random

from reactive_aio import Flow, range as flow_range

from ..functions import increment
from ..subscribers import Summing
from .sizes import growth, nanoseconds

_shapes = counting()


def chain(stages: int) -> Flow[int]:
    """Return a chain that no compiled loop is cached for: its order of stages is a new one."""
    order = Random(next(_shapes))
    flow = flow_range(1)
    for _ in range(stages):
        flow = flow.map(increment) if order.random() < 0.5 else flow.filter(_always)
    return flow


def _always(_: object) -> bool:
    return True


async def measure(stages: int, _: int) -> float:
    async def subscribe() -> None:
        await Summing().sum_of(chain(stages))

    return await nanoseconds(subscribe(), stages)


question = growth(
    "Stages of a chain, compiled",
    "compile a chain of {n} stages, for each stage",
    (10, 100, 1_000),
    measure,
    goal=2,
)
