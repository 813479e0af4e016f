"""A worker of Spark for a test."""

from collections.abc import Iterator

import pytest

from tests.executors.worker import Worker, new_worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker that serves further tasks, as Spark's do by default."""
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    with new_worker() as made:
        yield made
