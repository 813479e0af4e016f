# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Write custom operators, as the package writes its own.

    python examples/own_operator.py

`clip` is an inline stage: two lines that are compiled into the loop. `every_other` keeps state.
`spelled` combines other operators, and changes the type of the elements.
"""

import asyncio

import reactive_aio as rx
from reactive_aio.stage import InlineStage

_CLIP = InlineStage(
    "clip",
    params=("low", "high"),
    each="""
    if x < $low or x > $high:
        drop
    """,
)

_EVERY_OTHER = InlineStage(
    "every_other",
    setup="$odd = False",
    each="""
    $odd = not $odd
    if not $odd:
        drop
    """,
)


def clip(source: rx.Flow[int], low: int, high: int) -> rx.Flow[int]:
    """Drop numbers that are not between *low* and *high*."""
    return source.via(_CLIP, low, high)


def every_other(source: rx.Flow[int]) -> rx.Flow[int]:
    """Drop every second element."""
    return source.via(_EVERY_OTHER)


def spelled(source: rx.Flow[int]) -> rx.Flow[str]:
    """Spell out numbers."""
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven")
    return source.filter(lambda n: n < len(words)).map(lambda n: words[n])


async def main() -> None:
    """Combine the operators, print the flow, and run it."""
    numbers = clip(rx.range(1_000_000), 2, 7).transform(every_other).transform(spelled)
    print(numbers.explain())
    found = await numbers.to_list(limit=10)
    print(found)
    assert found == ["two", "four", "six"]


if __name__ == "__main__":
    asyncio.run(main())
