"""What the programs are started with."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def jvm_starts_quickly() -> Iterator[None]:
    """Each program starts a JVM of its own, which does not run for long enough to be optimized."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield
