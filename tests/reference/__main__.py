"""Write docs/operators.md and its pictures."""

import asyncio

from reactive_aio.testing import VirtualTimeLoop
from tests.reference import page
from tests.reference.example_runs import REAL_TIME, text
from tests.reference.vocabulary import Entry


def section(entry: Entry) -> tuple[str, str]:
    loop = None if entry.name in REAL_TIME else VirtualTimeLoop
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(page.section(entry, text(entry)))


if __name__ == "__main__":
    page.write(section)
