"""``df.observe(observation, ...)``: the figures that a query collects while it is read.

The tasks collect them, whoever starts the jobs. But it is the end of a SQL query that has Spark
hand them to the `Observation`, and neither windows of partitions nor an RDD's local iterator are
one: ``Observation.get`` would wait for ever. (``df.toLocalIterator()`` ends its query before it
begins to read, so ``get`` says 0.) So a reading hands them over itself when it has ended, in
whichever way. As with Spark's own actions they are of what was computed until then, and of the
first reading.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from .failures import UnsupportedDataFrame

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ("Observed",)

_NODE: Final = "CollectMetrics"
_TELL: Final = "tryComplete"  # of Spark's ObservationManager, private


class Observed:
    """The observations of one query. Made and used on threads: each call asks the JVM."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    @classmethod
    def by_any(cls, dataset: Any, context: "SparkContext") -> "Observed | None":
        """Look whether anybody observes the query; raise if they could not be told."""
        execution = dataset.queryExecution()
        if _NODE not in execution.logical().toString():
            return None
        try:
            manager = dataset.sparkSession().observationManager()
            # By reflection: py4j would find out only when it is called.
            manager.getClass().getMethod(_TELL, _array(context, execution.getClass()))
        except Exception as error:
            raise UnsupportedDataFrame(
                "from_dataframe() cannot tell an Observation what was observed: this version of "
                "Spark has no way to do that, and Observation.get would wait for ever. Leave "
                "df.observe() out, or read what df.toArrow() or df.collect() returns."
            ) from error
        return cls(manager)

    def tell(self, dataset: Any) -> None:
        """Hand over what was observed until now, in a reading of *dataset*, to those who wait."""
        with suppress(Exception):  # a session that is lost, which the flow tells
            getattr(self._manager, _TELL)(dataset.queryExecution())


def _array(context: "SparkContext", kind: Any) -> Any:
    untyped: Any = context
    found = untyped._gateway.new_array(untyped._jvm.java.lang.Class, 1)
    found[0] = kind
    return found
