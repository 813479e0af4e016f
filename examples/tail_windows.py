# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Follow log files as `tail -F` does, and count their lines by level in windows of half a second.

    python examples/tail_windows.py [FILE ...]

Lines look like ``ERROR the disk is full``. Each level is a group with windows of its own. Without
files, it follows two that it writes itself, and ends after six windows.
"""

import argparse
import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import reactive_aio as rx

Count = tuple[str, int]


def counts(paths: Sequence[Path], seconds: float) -> rx.Flow[Count]:
    """How many lines of each level have been written, in windows of so many *seconds*."""

    def windows_of(group: rx.GroupedFlow[str, str]) -> rx.Flow[Count]:
        windows = group.window_timeout(10_000, seconds)
        return windows.flat_map(lambda lines: rx.from_awaitable(counted(group.key, lines)))

    async def counted(level: str, lines: rx.Flow[str]) -> Count:
        return level, await lines.count()

    followed = [rx.from_lines(path, follow=True, poll=0.05) for path in paths]
    levels = rx.merge(*followed).group_by(
        lambda line: line.partition(" ")[0], max_groups=16, on_full="evict", idle=60
    )
    return levels.flat_map(windows_of, concurrency=16)


def write_samples(paths: Sequence[Path]) -> Iterator[int]:
    """Append lines to *paths*, one after the other; the number of each line."""
    for number in itertools.count():
        time.sleep(0.01)
        with paths[number % len(paths)].open("a", encoding="utf-8") as file:
            file.write(f"{'ERROR' if number % 5 == 0 else 'INFO'} line {number}\n")
        yield number


async def main(paths: Sequence[Path]) -> None:
    """Print the counts of *paths*, until Ctrl-C."""
    await counts(paths, 0.5).for_each(print)


async def show_samples(paths: Sequence[Path]) -> None:
    """Write to *paths* in a thread, and print six counts."""
    async with rx.from_thread(lambda: write_samples(paths)).running():
        await counts(paths, 0.5).take(6).for_each(print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", type=Path)
    if paths := parser.parse_args().paths:
        asyncio.run(main(paths))
    else:
        with TemporaryDirectory() as folder:
            samples = [Path(folder, name) for name in ("web.log", "jobs.log")]
            for sample in samples:
                sample.touch()
            asyncio.run(show_samples(samples))
