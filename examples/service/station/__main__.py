"""``station``: serve until SIGTERM."""

import argparse
import logging
from pathlib import Path

import httpx
import uvicorn

from station.app import DRAIN, make_app
from station.flow import Reading
from station.store import Store


def main() -> None:
    """Parse the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--rooms", required=True, help="the URL of the service that knows rooms")
    parser.add_argument("--database", type=Path, default=Path("readings.db"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    rooms = httpx.AsyncClient(base_url=options.rooms)

    async def find_room(reading: Reading) -> str:
        answer = await rooms.get(f"/sensors/{reading.sensor}")
        answer.raise_for_status()
        return answer.text

    app = make_app(find_room, Store(options.database))
    uvicorn.run(app, host=options.host, port=options.port, timeout_graceful_shutdown=int(DRAIN) + 5)


if __name__ == "__main__":
    main()
