# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio[httpx]"]
# ///
"""Server-sent events: each is worked on, across lost connections and restarts of this program.

    python examples/recipes/sse_resume.py https://example.org/prices --state prices.position

The id of the last event whose work is done, with that of all before it, is kept in a file. After a
lost connection, and after a restart from the file, it is sent as `Last-Event-ID`, so that a server
which keeps events continues after it. Events may be worked on twice, and none is left out.
Serve until Ctrl-C.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Unpack

import reactive_aio as rx
from reactive_aio.asgi import Event, EventStreamOptions, from_sse
from reactive_aio.delivery import DeliveryFlow, log_deliveries
from reactive_aio.errors import ReactiveError

# As long as the server is away for no more than an hour.
RECONNECT: Final = rx.RetryPolicy(
    attempts=None, within=3600, delay=0.5, only=ConnectionError, reset=True
)


class Position:
    """The id of an event, in a file that a crash leaves old or new, and never in between."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.last: str | None = self._path.read_text("utf-8") if self._path.exists() else None
        """The id that was saved last."""

    async def save(self, positions: Mapping[str, str]) -> None:
        """Keep the id of the last event that is done."""
        await asyncio.to_thread(self._replace, positions["events"])
        self.last = positions["events"]

    def _replace(self, position: str) -> None:
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            file.write(position)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


def events(
    url: str,
    position: Position,
    retry: rx.RetryPolicy = RECONNECT,
    **options: Unpack[EventStreamOptions],
) -> DeliveryFlow[Event[str]]:
    """The events of *url* after the saved position, which follows the work on them."""
    source = rx.defer(lambda: from_sse(url, last_event_id=position.last, retry=retry, **options))
    return log_deliveries(
        # An event that the server gives no id could not be found again.
        source.do_on_next(require_id),
        position.save,
        position=lambda event: str(event.id),
        partition=lambda event: "events",
        every=100,
        within=1.0,
    )


def require_id(event: Event[str]) -> None:
    """Refuse an event without an id."""
    if event.id is None:
        raise ValueError("an event has no id, so that a client could not continue after it")


async def main(options: argparse.Namespace) -> int:
    """Print events until SIGTERM or Ctrl-C."""
    flow = events(options.url, options.state)
    printed = flow.ack_after(lambda event: print(event.id, event.data, flush=True))
    return await rx.run_until_signal(printed, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="where the events come from")
    state = "the file in which the position is kept"
    parser.add_argument("--state", type=Position, required=True, metavar="PATH", help=state)
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (ReactiveError, ValueError, OSError) as error:
        sys.exit(f"{options.url}: {error}")
