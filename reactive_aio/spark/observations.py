"""``df.observe(observation, ...)``: metrics that a query collects while it is read.

The tasks collect them, whichever action starts the jobs. But Spark completes an `Observation` at
the end of a SQL query only, and neither windows of partitions nor the local iterator of an RDD are
one: ``Observation.get`` would wait for ever. (``df.toLocalIterator()`` ends its query before it
begins to read, so ``get`` returns 0.) So a subscription completes its observations when it ends,
for whatever reason. As with Spark's own actions, the metrics cover the rows computed until then,
and the first subscription completes the observation.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ._internals import has_observation, observation_manager, publish_observations
from .errors import UnsupportedDataFrame

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ("Observations",)


class Observations:
    """The observations of one query. Made and used on threads: each method calls the JVM."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    @classmethod
    def of(cls, dataset: Any, context: "SparkContext") -> "Observations | None":
        """Return the observations of *dataset*, if any; raise if they cannot be published."""
        if not has_observation(dataset):
            return None
        try:
            return cls(observation_manager(context, dataset))
        except Exception as error:
            raise UnsupportedDataFrame(
                "from_dataframe() cannot complete the Observation of this DataFrame: this version "
                "of Spark has no way to do that, and Observation.get would wait for ever. Leave "
                "df.observe() out, or read what df.toArrow() or df.collect() returns."
            ) from error

    def publish(self, dataset: Any) -> None:
        """Complete the observations with what the jobs of *dataset* have collected so far."""
        with suppress(Exception):  # a lost session, which the flow reports
            publish_observations(self._manager, dataset)
