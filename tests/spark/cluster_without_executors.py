"""The program of test_cluster.py that loses its only worker: prints what is logged, as JSON."""

import asyncio
import json
import logging
import os
import signal
import sys
from typing import Any

from reactive_aio.spark import from_dataframe
from reactive_aio.testing.probes import SubscriberProbe

from .cluster_driver import shuffled, start
from .conftest import wait_for_elements, wait_until

SECONDS = 90.0  # until the warning, on a busy machine


class Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


async def lose(spark: Any, worker: int) -> list[str]:
    messages = Messages()
    logging.getLogger("reactive_aio.spark").addHandler(messages)
    flow = await asyncio.to_thread(lambda: from_dataframe(shuffled(spark), rows="tuple"))
    probe = SubscriberProbe[Any](1).subscribed_to(flow)
    await wait_for_elements(probe, 1)
    os.killpg(worker, signal.SIGKILL)
    probe.request(2**40)
    await wait_until(lambda: messages.found, seconds=SECONDS)
    assert not probe.is_terminated
    probe.cancel()
    return messages.found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(lose(start(sys.argv[1]), int(sys.argv[2])))))  # noqa: T201
    sys.stdout.flush()
    os._exit(0)  # without executors, Spark takes long to stop
