# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""The tokens of a model: several readers see the same answer, also those that come late.

    python examples/tokens.py

The model is called once. `replay` repeats what has been said to a reader that comes later; then all
see each token as it is made. A reader that leaves does not end the answer of the others.
"""

import asyncio
from collections.abc import AsyncIterator

import reactive_aio as rx

ANSWER = "A reactive stream lets the consumer say how much it can take ."
prompts: list[str] = []


async def generate(prompt: str) -> AsyncIterator[str]:
    """What a model answers, token by token."""
    prompts.append(prompt)
    for token in ANSWER.split(" "):
        await asyncio.sleep(0.05)
        yield token


async def read(name: str, answer: rx.Flow[str], begin: float, most: int | None = None) -> None:
    """Read *answer* after *begin* seconds, up to so many tokens."""
    await asyncio.sleep(begin)
    tokens = answer if most is None else answer.take(most)
    text = await tokens.reduce(lambda text, token: f"{text} {token}")
    print(f"{name}: {text}")


async def main() -> None:
    """Start a reader at once, one in the middle, one after the end, and one that leaves early."""
    answer = rx.from_aiter(lambda: generate("What is a reactive stream?")).replay(1000)
    async with asyncio.TaskGroup() as readers:
        readers.create_task(read("first", answer, 0))
        readers.create_task(read("leaves", answer, 0, most=4))
        readers.create_task(read("middle", answer, 0.3))
        readers.create_task(read("late", answer, 1.5))
    print("calls of the model:", len(prompts))


if __name__ == "__main__":
    asyncio.run(main())
