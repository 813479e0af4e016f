"""Write docs/operators.md and its pictures."""

import asyncio

from publishing.reference import page
from publishing.reference.example_runs import REAL_TIME, forgotten, text
from publishing.reference.vocabulary import ENTRIES, Entry
from reactive_aio.testing import VirtualTimeLoop


def section(entry: Entry) -> tuple[str, str]:
    loop = None if entry.name in REAL_TIME else VirtualTimeLoop
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(page.section(entry, text(entry)))


if __name__ == "__main__":
    if missing := [*filter(None, map(forgotten, ENTRIES.values()))]:
        raise SystemExit("\n".join(missing))
    page.write(section)
