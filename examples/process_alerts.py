# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio"]
# ///
"""Watch the output of a program, and alert once for each burst of errors.

    python examples/process_alerts.py [COMMAND ...]

The program is stopped when the flow is cancelled, and waits while its output is not read.
`debounce` keeps the last error of a burst, and emits it when there was none for 0.3 seconds.
Without a command, it watches a program that fails in three bursts.
"""

import asyncio
import sys

import reactive_aio as rx
from reactive_aio.errors import ProcessFailed

SAMPLE = """
import time
for burst in range(3):
    for attempt in range(20):
        print(f"ERROR the disk of host {burst} is full (attempt {attempt})", flush=True)
    print("INFO waiting", flush=True)
    time.sleep(0.5)
"""


def alerts(command: list[str]) -> rx.Flow[str]:
    """One error for each burst of them in the output of *command*."""
    errors = rx.from_process(command).lines().filter(lambda line: line.startswith("ERROR"))
    return errors.debounce(0.3)


async def main(command: list[str] | None = None) -> None:
    """Print the alerts, until the program ends."""
    command = command or [sys.executable, "-c", SAMPLE]
    try:
        async for alert in alerts(command):
            print(f"ALERT: {alert.removeprefix('ERROR ')}")
    except ProcessFailed as error:
        print(f"the program has failed: {error}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
