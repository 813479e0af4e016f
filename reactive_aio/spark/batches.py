"""Computing partitions as Arrow record batches: the calls into the JVM, all of which block.

Spark has this for its own ``toArrow`` and keeps it private. What is used of it is listed here and
probed by `arrow_missing`, and each piece has a contract test (tests/spark/test_contract.py):

* ``Dataset.toArrowBatchRdd(int, String, boolean, boolean)``: every element a batch as bytes;
* ``PythonRDD.runJob(SparkContext, JavaRDD, ArrayList)``: computes some partitions, then serves
  what they hold on a local socket, once, to whoever knows the secret;
* ``getResult()`` of that server, which raises unless it sent everything;
* ``pyspark.sql.pandas.types.to_arrow_schema``: the schema that such batches have.
"""

from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

from .frames import Frames, connect
from .jobs import Jobs, drop
from .observed import Observed

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.types import StructType

__all__ = ("Batches", "arrow_missing", "arrow_schema")

_ZONE: Final = "UTC"  # as toArrow() has it; a timestamp's number is the same in all of them
_UTC: Final[dict[str, Any]] = {"timestamp_utc": True}
_DUPLICATES_FAIL: Final = False  # two columns of a name are told apart by their place
_LARGE_TYPES: Final = False


class Batches:
    """The partitions of one subscription. Its methods are called on threads of its own."""

    def __init__(self, jobs: Jobs, rows: int) -> None:
        self._jobs = jobs
        self._rows = rows  # of a batch of the first window
        self._dataset: Any = None
        self._observed: Observed | None = None
        self._runner: _Runner | None = None
        self._made: list[Any] = []
        self._servers: dict[int, Any] = {}
        self.cancelled: bool = False
        """Set by the loop: no job begins any more."""

    def prepare(self) -> None:
        """Look up, on another thread, what need not wait for the plan: who observes, what runs."""
        self._jobs.begin(self._prepare, alone=True)

    def _prepare(self) -> None:
        untyped: Any = self._jobs.df
        self._observed = Observed.by_any(untyped._jdf, self._jobs.context)
        self._runner = _Runner(self._jobs.context)

    def plan(self) -> int:
        """Plan the query, and run its shuffles; return the number of partitions."""
        return self._jobs.begin(self._plan, alone=True)

    def _plan(self) -> int:
        self._refuse()
        untyped: Any = self._jobs.fresh()
        self._dataset = untyped._jdf
        self._made.append(self._rdd(self._rows))
        return cast("int", self._made[0].getNumPartitions())

    def _rdd(self, rows: int) -> Any:
        """A new RDD of batches over the one plan of this subscription, whose shuffles it shares.

        When a job fails, Spark fails all others over the same RDD, among them the windows before,
        whose rows were good. So each window has an RDD of its own; they cost a millisecond.
        But if somebody observes the query, there is one for all: Spark's figures are of one RDD.
        """
        with suppress(IndexError):  # the one that was made for the plan
            return self._made[0] if self._observed is not None else self._made.pop()
        dataset = self._dataset
        rdd = dataset.toArrowBatchRdd(rows, _ZONE, _DUPLICATES_FAIL, _LARGE_TYPES)
        made = rdd.toJavaRDD()
        drop(self._jobs.context, rdd)
        return made

    def run(self, start: int, stop: int, rows: int) -> Frames:
        """Compute partitions, as one job; return the connection on which they are served.

        Both `plan` and `prepare` have returned before. The rows come in batches of up to so many
        *rows*. The connection is made at once, even if nobody reads yet: the JVM waits 15 seconds
        for it.
        """
        return self._jobs.begin(partial(self._run, start, stop, rows), alone=True)

    def _run(self, start: int, stop: int, rows: int) -> Frames:
        self._refuse()
        assert self._runner is not None
        address, secret, server = self._runner.run(self._rdd(rows), range(start, stop))
        self._servers[start] = server
        return connect(address, secret)

    def confirm(self, start: int, error: Exception | None = None) -> None:
        """Ask Spark whether it sent all of what begins at *start*.

        Only then was the end of the connection the end of the rows: it looks the same when the JVM
        has died. With an *error* of the connection, raise what Spark has to say about it, or else
        the error.
        """
        with self._jobs.telling():
            server = self._servers.pop(start)
            try:
                server.getResult()
            finally:
                drop(self._jobs.context, server)  # which has the rows
            if error is not None:
                raise error

    def forget(self) -> None:
        """Drop what is in the JVM, when all other calls have returned. On a thread, as it asks it.

        But first those who observe the query get their figures: no more of it will be computed.
        """
        if self._observed is not None and self._dataset is not None:
            self._observed.tell(self._dataset)
        held = (*self._servers.values(), *self._made, self._dataset)
        drop(self._jobs.context, *filter(None, held))
        self._servers.clear()
        self._made.clear()
        self._dataset = self._observed = self._runner = None

    def cancel(self) -> None:
        """Cancel the jobs that run now."""
        self._jobs.cancel()

    def _refuse(self) -> None:
        if self.cancelled:
            raise RuntimeError("the subscription has been cancelled")


class _Runner:
    """Runs jobs over partitions. What py4j has to look up in the JVM, it looks up once."""

    def __init__(self, context: "SparkContext") -> None:
        untyped: Any = context
        self._context = context
        self._spark = untyped._jsc.sc()
        # By their whole names: py4j would ask for each part, or try all packages that it knows.
        self._run = getattr(untyped._jvm, "org.apache.spark.api.python.PythonRDD").runJob
        self._list = getattr(untyped._jvm, "java.util.ArrayList")

    def run(self, rdd: Any, partitions: range) -> tuple[Any, Any, Any]:
        """Compute *partitions*; return where they are served, the secret for it, and the server."""
        wanted = self._list()
        for each in partitions:
            wanted.add(each)
        served = self._run(self._spark, rdd, wanted)
        found = served[0], served[1], served[2]  # tuple() would try a fourth, by another call
        drop(self._context, served)
        return found


def arrow_schema(schema: "StructType") -> Any:
    """The ``pyarrow.Schema`` of the batches. Raises for a type that Arrow cannot carry."""
    types: Any = import_module("pyspark.sql.pandas.types")
    make = types.to_arrow_schema
    # Up to 4.1 it knew UTC and nothing else. Spark Connect of that version is read all the same.
    zone = {"timezone": _ZONE} if "timezone" in signature(make).parameters else _UTC
    return make(
        schema,
        error_on_duplicated_field_names_in_struct=_DUPLICATES_FAIL,
        prefers_large_types=_LARGE_TYPES,
        **zone,
    )


def arrow_missing(context: "SparkContext") -> str | None:
    """Say which call into the JVM is not what it must be, or None. Asks the JVM, for 20 ms."""
    for owner, name, types in _CALLS:
        try:
            _method(context, owner, name, types)
        except Exception:
            short = [each.rpartition(".")[2] for each in (owner, *types)]
            return f"this version of Spark has no {short[0]}.{name}({', '.join(short[1:])})"
    return None


_PRIMITIVES: Final = {"int": "Integer", "boolean": "Boolean"}
_CALLS: Final = (
    (
        "org.apache.spark.sql.classic.Dataset",
        "toArrowBatchRdd",
        ("int", "java.lang.String", "boolean", "boolean"),
    ),
    (
        "org.apache.spark.api.python.PythonRDD",
        "runJob",
        (
            "org.apache.spark.SparkContext",
            "org.apache.spark.api.java.JavaRDD",
            "java.util.ArrayList",
        ),
    ),
)


def _method(context: Any, owner: str, name: str, types: tuple[str, ...]) -> Any:
    """Find a method by reflection: py4j would find out only when it is called."""
    lang = context._jvm.java.lang
    loader = lang.Thread.currentThread().getContextClassLoader()
    classes = context._gateway.new_array(lang.Class, len(types))
    for place, each in enumerate(types):
        primitive = _PRIMITIVES.get(each)
        found = getattr(lang, primitive).TYPE if primitive else loader.loadClass(each)
        classes[place] = found
    return loader.loadClass(owner).getMethod(name, classes)
