"""The environment of the programs."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def jvm_starts_quickly() -> Iterator[None]:
    """Start JVMs without optimizations, as each program runs only for a short time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield
