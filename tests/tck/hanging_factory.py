"""A factory that hangs. The module imports little: the factory is called soon, on any machine."""

import time


def hangs() -> None:
    print("waiting for a candidate", flush=True)  # noqa: T201
    time.sleep(1000)
