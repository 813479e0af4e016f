# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "httpx>=0.27"]
# ///
"""Log files followed: their lines, in batches, as NDJSON to an HTTP server.

    python examples/recipes/follow_files.py --to http://127.0.0.1:9428/lines /var/log/*.log

The files are read to their end and followed, through rotation and truncation, as `tail -F` does.
When the server is slow, the files are not read further: no line is dropped, and memory stays small.
A batch is sent again while the server cannot be reached. SIGTERM and Ctrl-C drain: what was read is
sent. The next run reads the files from their beginning. Serve until Ctrl-C.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import httpx

import reactive_aio as rx

AGAIN: Final = rx.RetryPolicy(
    attempts=None, within=600, delay=0.2, maximum=10, only=httpx.TransportError
)


def followed(paths: Sequence[Path], *, poll: float = 0.25) -> rx.Flow[dict[str, str]]:
    """The lines of all *paths*, each with the name of its file; those of a file in their order."""
    return rx.merge(*(lines(path, poll) for path in paths))


def lines(path: Path, poll: float) -> rx.Flow[dict[str, str]]:
    """The lines of one file. Bytes that are not UTF-8 become `\\xNN`."""
    read = rx.from_lines(path, follow=True, poll=poll, errors="backslashreplace")
    return read.map(lambda line: {"file": str(path), "line": line})


def post(client: httpx.AsyncClient, url: str) -> Callable[[list[dict[str, str]]], Awaitable[None]]:
    """A function that sends a batch, and fails unless the server has accepted it."""

    async def send(batch: list[dict[str, str]]) -> None:
        body = "".join(json.dumps(each) + "\n" for each in batch)
        headers = {"content-type": "application/x-ndjson"}
        response = await client.post(url, content=body, headers=headers)
        response.raise_for_status()

    return send


async def main(options: argparse.Namespace) -> int:
    """Send lines until SIGTERM or Ctrl-C."""
    async with httpx.AsyncClient(timeout=30) as client:
        batches = followed(options.files).buffer_timeout(options.batch, 0.5)
        sent = batches.running(post(client, options.to), retry=AGAIN)
        return await rx.run_until_signal(sent, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", help="files that exist")
    parser.add_argument("--to", required=True, metavar="URL", help="where batches are sent (POST)")
    parser.add_argument("--batch", type=int, default=500, metavar="N", help="lines of one request")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (httpx.HTTPError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
