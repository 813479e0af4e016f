"""Every private name of PySpark, Py4J and Spark's JVM classes that this package uses.

PySpark's public API cannot compute chosen partitions, send a partition limit, close a local
iterator early, or release a JVM object at once. Each function here wraps the private names for
one such purpose; its docstring gives the purpose and the first version that has the names.
`partition_jobs` has those by which jobs are run, and `plans` those of Spark's plans. No module
outside of this package touches a private name. One that is missing or has another shape disables
only what depends on it: `missing_arrow_call` and `missing_connect_name` are probed before a mode is
chosen, and the other functions fall back as their docstrings say.
``tests/spark/test_private_names.py`` lists the names by version; ``test_internals.py`` and
``test_internals_connect.py`` check what the installed version does.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cache, cached_property, partial
from importlib import import_module
from inspect import getattr_static, getgeneratorlocals, signature
from threading import Lock, local
from types import FrameType, FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import socket
    from subprocess import Popen

    from pyspark import RDD, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

_SQL: Final = "org.apache.spark.sql"
_CLASSIC: Final = f"{_SQL}.classic"
_TIME_ZONE: Final = "UTC"  # as toArrow() uses it; the number of a timestamp is the same in all
_REFUSE_DUPLICATE_NAMES: Final = False  # columns with the same name are distinguished by position
_LARGE_TYPES: Final = False


# -- the session and its JVM ----------------------------------------------------------------------
def gateway_process(context: "SparkContext | None" = None) -> "Popen[bytes] | None":
    """Return the JVM process that PySpark started for *context*, or last; None if it started none.

    ``SparkContext._gateway.proc``, since 3.0. Used to lower its priority and to detect its death.
    """
    from pyspark import SparkContext

    untyped: Any = context or SparkContext
    return getattr(untyped._gateway, "proc", None)


def forget_dead_jvm() -> None:
    """If the JVM that PySpark started has died, let PySpark start another one for a new session.

    ``SparkContext._gateway``, ``_jvm``, ``_active_spark_context`` and ``_lock``, since 1.0;
    ``_accumulatorServer``, since 1.4; ``SparkSession._instantiatedSession`` and ``_activeSession``,
    since 2.0. What PySpark keeps of a JVM stays when it dies, so every later session would try to
    reach that one. The context that is lost keeps the names for itself: what was made with it must
    not call another JVM, where the numbers of its objects belong to other ones.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    contexts: Any = SparkContext
    sessions: Any = SparkSession
    with contexts._lock:
        process, lost = gateway_process(), contexts._active_spark_context
        if process is None or process.poll() is None:
            return
        gateway = contexts._gateway
        if lost is not None:
            lost._gateway, lost._jvm = gateway, contexts._jvm
            lost._jsc, server, lost._accumulatorServer = None, lost._accumulatorServer, None
            lost.stop = _already_lost
            server.shutdown()
        for name in ("_instantiatedSession", "_activeSession"):
            session = getattr(sessions, name)
            if session is not None:
                session.stop = _already_lost  # it would call the JVM, and raise
                setattr(sessions, name, None)
        contexts._active_spark_context = contexts._gateway = contexts._jvm = None
    gateway.shutdown_callback_server()


def dead_local_server() -> "Popen[bytes] | None":
    """Return the JVM of the Spark Connect server that PySpark started here, if it has died.

    ``SparkSession.builder.remote("local")`` starts it like that of a classic session, and sets
    the variable ``SPARK_LOCAL_REMOTE``, since 3.4.
    """
    process = gateway_process() if _LOCAL_SERVER in os.environ else None
    return None if process is None or process.poll() is None else process


_LOCAL_SERVER: Final = "SPARK_LOCAL_REMOTE"


def _already_lost() -> None:
    """Stop what was lost with its JVM: nothing is left to stop."""


def java_class(owner: Any, name: str) -> Any:
    """Return a class of the JVM by its full name. ``_jvm`` of a context or a session, since 1.0.

    ``jvm.org.apache.spark.X`` would ask the JVM for each part of the name, and each time it would
    search all of Spark's jars for a class of that name: 3 to 5 ms.
    """
    return getattr(owner._jvm, name)


def is_context_stopped(context: "SparkContext") -> bool:
    """Return whether *context* has been stopped, in Python or in the JVM. Calls the JVM.

    ``SparkContext._jsc``, since 1.0. Raises when the JVM does not answer.
    """
    untyped: Any = context
    return untyped._jsc is None or bool(untyped._jsc.sc().isStopped())


def _sql_class(owner: Any, name: str) -> Any:
    """Return a class of classic SQL: of ``sql.classic`` since 4.0, and of ``sql`` before."""
    from py4j.java_gateway import JavaClass

    found = java_class(owner, f"{_CLASSIC}.{name}")
    return found if isinstance(found, JavaClass) else java_class(owner, f"{_SQL}.{name}")


def count_executors(context: "SparkContext") -> int:
    """Return how many executors *context* has. Calls the JVM.

    ``SparkContext.getExecutorMemoryStatus``, since 1.0: a method of the JVM's class. The driver is
    one of its entries.
    """
    untyped: Any = context
    return cast("int", untyped._jsc.sc().getExecutorMemoryStatus().size()) - 1


def is_context_closed(context: "SparkContext") -> bool:
    """Return whether ``stop()`` of *context* has returned in this process.

    ``SparkContext._jsc`` and ``_active_spark_context``, since 1.0: when the first is gone and the
    second is not, PySpark cannot make another session. It calls nothing. A JVM that exits stops its
    context as well.
    """
    untyped: Any = context
    contexts: Any = type(context)
    return untyped._jsc is None and contexts._active_spark_context is not context


def bind_active_session(spark: "SparkSession") -> bool:
    """Make *spark* the active session of this thread in the JVM; return whether that worked.

    ``SparkSession._jvm`` and ``_jsparkSession``, since 2.0.
    """
    untyped: Any = spark
    with suppress(AttributeError, TypeError):
        classic = _sql_class(untyped, "SparkSession")
        classic.setActiveSession(untyped._jsparkSession)
        return True
    return False


def has_pinned_threads(context: "SparkContext") -> bool:
    """Return whether each Python thread has a JVM thread of its own (``PYSPARK_PIN_THREAD``).

    ``SparkContext._gateway``, since 1.0; a ``ClientServer`` when threads are pinned, since 3.2.
    """
    from py4j.clientserver import ClientServer

    untyped: Any = context
    return isinstance(untyped._gateway, ClientServer)


class LocalProperties:
    """The local properties of this thread's jobs, for other threads.

    ``SparkContext.getLocalProperties`` and ``setLocalProperties``, since 1.0: methods of the JVM's
    class, which PySpark's ``inheritable_thread_target`` uses.
    """

    def __init__(self, context: "SparkContext") -> None:
        untyped: Any = context
        self._context = context
        self._java_context = untyped._jsc.sc()
        self._properties = self._java_context.getLocalProperties()

    def apply(self) -> None:
        """Give this thread a copy of the properties: queries add to those of their thread."""
        self._java_context.setLocalProperties(self._properties.clone())

    def close(self) -> None:
        """Release the JVM objects; `apply` must not be called afterwards."""
        release(self._context, self._properties, self._java_context)


def session_tags(spark: "SparkSession") -> tuple[str, ...]:
    """Return the job tags by which ``interruptAll`` and ``interruptTag`` find jobs of this thread.

    ``sessionJobTag`` and ``managedJobTags`` of the JVM's class, since 4.0; the latter are of each
    thread. Spark adds them to the jobs of a SQL query, which those over its RDD are not.
    """
    untyped: Any = spark
    session = untyped._jsparkSession
    with suppress(Exception):
        added = session.managedJobTags().get().values().mkString(",")
        return session.sessionJobTag(), *filter(None, added.split(","))
    return ()


def clear_session_tags(spark: "SparkSession") -> None:
    """Remove the tags of *spark* from this thread; a thread of a pool must not keep them.

    ``SparkSession.clearTags``, public since 4.0; before, a classic session has no tags.
    """
    with suppress(Exception):
        spark.clearTags()


def call_plainly(method: Any, *arguments: Any) -> Any:
    """Call a *method* of the JVM, and raise its exception as Py4J does: ``Py4JJavaError``.

    ``py4j.java_gateway.JavaMember.__call__`` with Py4J's own ``py4j.protocol.get_return_value``,
    for which PySpark puts one of its own there, since 1.6. PySpark's asks the JVM some eighty times
    for the class of the exception, which takes 20 ms of the processor, also where a job was
    cancelled and the exception is dropped. `typed_error` does the same for one that is delivered.
    """
    return _plain_call()(method, *arguments)


@cache
def _plain_call() -> Callable[..., Any]:
    from py4j import java_gateway, protocol

    untyped: Any = java_gateway
    known: dict[str, Any] = {**vars(untyped)}
    known["get_return_value"] = cast("Any", protocol).get_return_value
    return FunctionType(untyped.JavaMember.__call__.__code__, known)


def release(context: "SparkContext", *handles: Any) -> None:
    """Release the JVM objects of *handles* now; the handles must not be used afterwards.

    ``garbage_collect_object`` of Py4J's client, since 0.10.9. Py4J releases an object up to a
    second after its handle is collected, and a handle on which a method was called is in a
    reference cycle. Until then the JVM would keep all rows that a server has sent.
    """
    untyped: Any = context
    client = untyped._gateway._gateway_client
    immediately = {"enqueue": False} if has_pinned_threads(context) else {}
    for each in handles:
        client.garbage_collect_object(each._target_id, **immediately)


# -- partitions as Arrow record batches -----------------------------------------------------------
def java_dataset(df: "DataFrame") -> Any:
    """Return the JVM's Dataset of *df*. ``DataFrame._jdf``, since 1.3."""
    untyped: Any = df
    return untyped._jdf


class ArrowBatches:
    """Makes RDDs whose elements are the record batches, as bytes, of a dataset's partitions.

    ``Dataset.toArrowBatchRdd(int, String, boolean, boolean)``, since 4.2; ``toArrow`` uses it.
    Before, it has no parameters, since 2.3, and reads them from the settings of the dataset's
    session. So the dataset gets a session of its own, a copy with other settings:
    ``SparkSession.cloneSession``, since 2.2, and ``Dataset.ofRows``.
    """

    def __init__(self, context: "SparkContext", dataset: Any) -> None:
        self._context = context
        self.dataset = dataset
        """The JVM's Dataset that is computed."""
        self._settings: Any = None
        self._lock = Lock()  # between a setting and the call that reads it
        if not _has_parameters(context):
            session = dataset.sparkSession().cloneSession()
            self._settings = session.conf()
            for key, value in _ARROW_SETTINGS.items():
                self._settings.set(key, value)
            plan = dataset.queryExecution().analyzed()
            self.dataset = _sql_class(context, "Dataset").ofRows(session, plan)

    def rdd(self, rows: int) -> Any:
        """Return a ``JavaRDD`` of batches of up to *rows* rows."""
        if self._settings is None:
            rdd = call_plainly(
                self.dataset.toArrowBatchRdd,
                rows, _TIME_ZONE, _REFUSE_DUPLICATE_NAMES, _LARGE_TYPES,
            )  # fmt: skip
        else:
            with self._lock:
                self._settings.set(_ROWS_OF_BATCH, str(rows))
                rdd = call_plainly(self.dataset.toArrowBatchRdd)
        java_rdd = rdd.toJavaRDD()
        release(self._context, rdd)
        return java_rdd


_ROWS_OF_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ARROW_SETTINGS: Final = {  # what is a parameter in later versions
    "spark.sql.execution.pandas.structHandlingMode": "row",  # allows duplicate names
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}


def arrow_schema(schema: "StructType") -> Any:
    """Return the ``pyarrow.Schema`` of record batches. Raises for a type that Arrow cannot carry.

    ``pyspark.sql.pandas.types.to_arrow_schema``, since 2.3; the parameters were added later.
    """
    types: Any = import_module("pyspark.sql.pandas.types")
    make = types.to_arrow_schema
    known = signature(make).parameters
    options = {
        "timezone": _TIME_ZONE,  # since 4.2
        "timestamp_utc": True,
        "error_on_duplicated_field_names_in_struct": _REFUSE_DUPLICATE_NAMES,
        "prefers_large_types": _LARGE_TYPES,
    }
    chosen = {name: value for name, value in options.items() if name in known}
    return make(_with_nullable_voids(schema), **chosen)


def _with_nullable_voids(kind: Any) -> Any:
    """Return the same type with voids where Arrow allows them: as values that may be null.

    ``array()`` and ``map()`` have elements of type void that are never null, since there are none.
    """
    from pyspark.sql.types import ArrayType, MapType, NullType, StructField, StructType

    def is_nullable(inner: Any, nullable: bool) -> bool:
        return nullable or isinstance(inner, NullType)

    if isinstance(kind, ArrayType):
        inner = _with_nullable_voids(kind.elementType)
        return ArrayType(inner, is_nullable(inner, kind.containsNull))
    if isinstance(kind, MapType):
        key, value = _with_nullable_voids(kind.keyType), _with_nullable_voids(kind.valueType)
        has_null = is_nullable(value, kind.valueContainsNull)
        if isinstance(key, NullType):  # the same in memory; an Arrow map needs keys
            entry = StructType([StructField("key", key), StructField("value", value, has_null)])
            return ArrayType(entry, containsNull=False)
        return MapType(key, value, has_null)
    if isinstance(kind, StructType):
        fields = [(each, _with_nullable_voids(each.dataType)) for each in kind.fields]
        return StructType(
            [
                StructField(each.name, inner, is_nullable(inner, each.nullable), each.metadata)
                for each, inner in fields
            ]
        )
    return kind


def dataframe_of_batches(
    spark: "SparkSession", batches: Sequence[Any], schema: "StructType"
) -> "DataFrame":
    """Return a DataFrame of record batches, each of which is a partition where they are large.

    ``SparkContext._serialize_to_jvm``, since 2.4, and ``PythonSQLUtils.readArrowStreamFromFile``
    and ``toDataFrame``, since 3.3, by which ``createDataFrame`` sends a ``pyarrow.Table``. That
    would cut it by ``spark.sql.execution.arrow.maxRecordsPerBatch``, also if this is 0, and refuses
    types that a program has defined.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    untyped: Any = spark
    utils = java_class(spark, f"{_SQL}.api.python.PythonSQLUtils")
    sent = untyped.sparkContext._serialize_to_jvm(
        batches,
        cast("Any", ArrowStreamSerializer)(),
        utils.readArrowStreamFromFile,
        java_class(spark, f"{_SQL}.api.python.ArrowIteratorServer"),
    )
    make: Any = DataFrame
    made = utils.toDataFrame(sent, schema.json(), untyped._jsparkSession)
    return cast("DataFrame", make(made, spark))


def local_relation(spark: "SparkSession", table: Any, schema: "StructType") -> "DataFrame":
    """Return a DataFrame of a ``pyarrow.Table`` in a session of Spark Connect.

    ``pyspark.sql.connect.plan.LocalRelation``, since 3.4. ``createDataFrame``, which divides large
    tables, loses the number of rows without columns, and refuses types that a program has defined.
    """
    plans: Any = import_module("pyspark.sql.connect.plan")
    frames: Any = import_module("pyspark.sql.connect.dataframe")
    relation = plans.LocalRelation(table, schema=schema.json())
    return cast("DataFrame", frames.DataFrame(relation, spark))


_BATCH_RDD: Final = "toArrowBatchRdd"
_ARROW_CALLS: Final = {  # methods, and the types of their parameters
    "org.apache.spark.api.python.PythonRDD.runJob": (
        "org.apache.spark.SparkContext org.apache.spark.api.java.JavaRDD java.util.ArrayList"
    ),
}
_PARAMETERS: Final = "int java.lang.String boolean boolean"
_PRIMITIVES: Final = {"int": "java.lang.Integer", "boolean": "java.lang.Boolean"}


def missing_arrow_call(context: "SparkContext") -> str | None:
    """Name the first JVM method that mode ``"arrow"`` lacks, or return None. Takes 8 ms."""
    if not _has_parameters(context) and not has_method(context, _dataset_method(context), ""):
        return f"this version of Spark has no Dataset.{_BATCH_RDD}()"
    for method, parameters in _ARROW_CALLS.items():
        if not has_method(context, method, parameters):
            owner, _, name = method.rpartition(".")
            short = [each.rpartition(".")[2] for each in (owner, *parameters.split())]
            return f"this version of Spark has no {short[0]}.{name}({', '.join(short[1:])})"
    return None


def _has_parameters(context: "SparkContext") -> bool:
    """Whether ``Dataset.toArrowBatchRdd`` takes its settings as parameters. Asks once a context."""
    found = _with_parameters.get(context)
    if found is None:
        found = has_method(context, _dataset_method(context), _PARAMETERS)
        _with_parameters[context] = found
    return found


_with_parameters: WeakKeyDictionary["SparkContext", bool] = WeakKeyDictionary()


def _dataset_method(context: "SparkContext") -> str:
    return f"{_sql_class(context, 'Dataset')._fqn}.{_BATCH_RDD}"


def has_method(context: "SparkContext", method: str, parameters: str) -> bool:
    """Look up a method by reflection: Py4J itself would fail only at the call."""
    untyped: Any = context
    (owner, _, name), types = method.rpartition("."), parameters.split()
    try:
        thread = java_class(context, "java.lang.Thread").currentThread()
        loader = thread.getContextClassLoader()
        class_of_classes = java_class(context, "java.lang.Class")
        classes = untyped._gateway.new_array(class_of_classes, len(types))
        for position, each in enumerate(types):
            primitive = _PRIMITIVES.get(each)
            classes[position] = (
                java_class(context, primitive).TYPE if primitive else loader.loadClass(each)
            )
        loader.loadClass(owner).getMethod(name, classes)
    except Exception:
        return False
    return True


# -- plans ----------------------------------------------------------------------------------------
def limit_partitions(df: "DataFrame", count: int) -> "DataFrame":
    """Return the first *count* rows of each partition of *df*.

    Catalyst's ``LocalLimit`` and ``Dataset.ofRows``, since 2.0. ``df.limit``
    would compute rows of every partition, move them into one, and may change their order.
    """
    from pyspark.sql import DataFrame

    session: Any = df.sparkSession
    find = partial(java_class, session.sparkContext)
    integer = find("org.apache.spark.sql.types.DataTypes").IntegerType
    number = find("org.apache.spark.sql.catalyst.expressions.Literal")(count, integer)
    analyzed = java_dataset(df).queryExecution().analyzed()
    plan = find("org.apache.spark.sql.catalyst.plans.logical.LocalLimit")(number, analyzed)
    of_rows = _sql_class(session.sparkContext, "Dataset").ofRows
    return DataFrame(of_rows(session._jsparkSession, plan), session)


def row_rdd(df: "DataFrame") -> "RDD[Row]":
    """Return ``df.rdd``; on Python 3.11, without the lock of its ``cached_property``.

    The class attribute ``DataFrame.rdd`` is a ``cached_property``, since 3.4. That lock is shared
    by all DataFrames and held while shuffles run, so every other ``df.rdd`` would wait.
    """
    attribute = getattr_static(type(df), "rdd")
    if isinstance(attribute, cached_property):
        return cast("RDD[Row]", attribute.func(df))
    return df.rdd


# -- observations ---------------------------------------------------------------------------------
_OBSERVING_NODE: Final = "CollectMetrics"
_PUBLISH: Final = "tryComplete"


def has_observation(dataset: Any) -> bool:
    """Whether the query of *dataset* has an observation: the plan node ``CollectMetrics``, 4.0."""
    return _OBSERVING_NODE in dataset.queryExecution().logical().toString()


def observation_publisher(context: "SparkContext", dataset: Any) -> Callable[[Any], object]:
    """Return a function that completes observations with what the jobs of its argument collected.

    ``SparkSession.observationManager()`` and ``ObservationManager.tryComplete(QueryExecution)``,
    since 4.0. Raises when that method is missing: Py4J itself would fail only at the call.
    """
    manager = dataset.sparkSession().observationManager()
    untyped: Any = context
    classes = untyped._gateway.new_array(java_class(context, "java.lang.Class"), 1)
    classes[0] = dataset.queryExecution().getClass()
    manager.getClass().getMethod(_PUBLISH, classes)
    return lambda computed: getattr(manager, _PUBLISH)(computed.queryExecution())


# -- streaming queries ----------------------------------------------------------------------------
def has_no_new_data(query: "StreamingQuery") -> bool:
    """Whether *query*, which has ended, had looked for data and found none. Calls the JVM.

    ``StreamExecution.noNewData``, since 2.3. Without it, an end is taken for that.
    """
    untyped: Any = query
    with suppress(Exception):
        return bool(untyped._jsq.streamingQuery().noNewData())
    return True


def computed_state(query: "StreamingQuery") -> Iterator[tuple[int, int]]:
    """Yield of each stateful operator how many partitions are computed, and of how many.

    ``StreamExecution.lastExecution`` is the micro-batch that runs, since 2.0. The operators of its
    plan are found by the metric ``numStateStoreInstances``, since 3.2: at least one for each task.
    """
    untyped: Any = query
    execution: Any = None
    with suppress(Exception):
        execution = untyped._jsq.streamingQuery().lastExecution()
    nodes = [] if execution is None else [execution.executedPlan()]
    while nodes:
        node = nodes.pop()
        metric = node.metrics().get(_COMPUTED_STATE)
        if metric.isDefined():
            yield metric.get().value(), node.outputPartitioning().numPartitions()
        children = node.children()
        nodes.extend(children.apply(position) for position in range(children.size()))


_COMPUTED_STATE: Final = "numStateStoreInstances"


# -- exceptions -----------------------------------------------------------------------------------
_LONGEST_CHAIN: Final = 20  # causes of an exception
_AWAITED: Final = "Exception thrown in awaitResult"


def typed_error(error: Any) -> "PySparkException":
    """Return the first exception in the causes of a ``Py4JJavaError`` that PySpark has a type for.

    Without one it is the first that says anything: Spark hands the exception of a job that another
    thread has run inside one of its own, "Exception thrown in awaitResult".
    ``pyspark.errors.exceptions.captured.convert_exception``, since 3.4.
    """
    from pyspark.errors import UnknownException
    from pyspark.errors.exceptions.captured import convert_exception

    typed: Any = convert_exception(error.java_exception)
    first: Any = None
    while isinstance(typed, UnknownException):
        inner = getattr(typed, "_cause", None) or getattr(typed, "cause", None)
        if first is None and (inner is None or _AWAITED not in str(_description(typed))):
            first = typed
        typed = inner
    return plain_error(cast("PySparkException", typed or first))


def out_of_memory(error: Any) -> str | None:
    """Return Java's words if a ``Py4JJavaError`` was caused by the driver's lack of memory.

    ``Py4JJavaError.java_exception``, the public API of Py4J. The errors of executors are not found
    here: Spark reports them as text.
    """
    cause = error.java_exception
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            break
        if "OutOfMemory" in cause.getClass().getName():
            return cast("str", cause.toString())
        cause = cause.getCause()
    return None


def plain_error(error: "PySparkException") -> "PySparkException":
    """Return the same exception as an instance of its public base class, with its text inside.

    ``CapturedException._desc`` and ``_cause``, since 2.4; before 4.0 without the underscore. A
    captured exception calls the JVM, and blocks, whenever it is printed.
    """
    from pyspark.errors.exceptions import base

    text = _description(error)
    if text is None:
        return error
    public = (kind for kind in type(error).__mro__ if kind.__module__ == base.__name__)
    condition = condition_of(error)
    kind: Any = next(public)
    if not hasattr(error, "getCondition"):  # before 4.0, it is made of one or the other
        plain = kind(message=text)
        plain._error_class = condition or None
        return cast("PySparkException", plain)
    if condition:
        text = text.removeprefix(f"[{condition}] ")
    made = kind(message=text, errorClass=condition, messageParameters=error.getMessageParameters())
    return cast("PySparkException", made)


def _description(error: object) -> str | None:
    return getattr(error, "_desc", None) or getattr(error, "desc", None)


def condition_of(error: object) -> str | None:
    """Return the name of PySpark's condition for an error; before 4.0, it was its class."""
    for name in ("getCondition", "getErrorClass"):
        if hasattr(error, name):
            return cast("str | None", getattr(error, name)())
    return None


# -- the local iterator ---------------------------------------------------------------------------
class LocalIteratorReader:
    """The object that reads partitions for the generator of ``RDD.toLocalIterator``, since 3.0.

    It is the variable ``self`` of the generator's frame; PySpark keeps no other reference to it.
    Without it, closing the generator unpickles the rest of the partition, which takes seconds, and
    the number of partitions read is unknown. Its private attributes are ``_sock``, ``_sockfile``,
    ``_serializer``, ``_read_status`` and ``jsocket_auth_server``. Raises if it is not there.
    """

    def __init__(self, rows: Iterator[Any]) -> None:
        self._reader: Any = getgeneratorlocals(cast("Any", rows))["self"]
        self.connection: socket.socket = self._reader._sock
        self.file: BinaryIO = self._reader._sockfile

    @property
    def is_inside_partition(self) -> bool:
        """Whether rows of a partition have not been read; closing the generator reads them."""
        return bool(self._reader._read_status == 1)

    def set_done(self) -> None:
        """Let PySpark believe that the last partition has been read."""
        self._reader._read_status = 0

    def raise_plainly(self) -> None:
        """Let the error of a job be raised as by `call_plainly`."""
        server = self._reader.jsocket_auth_server
        call = partial(call_plainly, server.getResult)
        self._reader.jsocket_auth_server = SimpleNamespace(getResult=call, server=server)

    def wrap_load_stream(self, wrap: Callable[..., Iterator[Any]]) -> None:
        """Let ``wrap(load_stream, file)`` read the rows of each partition."""
        load_stream = partial(wrap, self._reader._serializer.load_stream)
        self._reader._serializer = SimpleNamespace(load_stream=load_stream)


# -- Spark Connect --------------------------------------------------------------------------------
_CONNECT_NAMES: Final = (
    "_retrying", "add_tag", "interrupt_tag", "thread_local", "to_table_as_iterator",
)  # fmt: skip


def missing_connect_name(df: "DataFrame") -> str | None:
    """Name the first attribute that mode ``"connect"`` lacks, or return None.

    ``SparkConnectClient.to_table_as_iterator``, ``add_tag``, ``interrupt_tag`` and
    ``thread_local``, since 3.5; ``_retrying``, since 4.0; ``DataFrame._plan``, since 3.4.
    """
    untyped: Any = df
    client = untyped.sparkSession.client
    for owner, name in (*((client, name) for name in _CONNECT_NAMES), (untyped, "_plan")):
        if not hasattr(owner, name):
            return f"this version of PySpark has no {type(owner).__name__}.{name}"
    return None


def connect_client(df: "DataFrame", sleep: Callable[[float], object]) -> Any:
    """Return a copy of the client of *df*, with tags of its own and *sleep* between retries.

    It uses the same channel and session. PySpark tries for ten minutes to reach a server that is
    gone; *sleep* may raise to end that.
    """
    client: Any = cast("Any", df).sparkSession.client
    own, retrying = copy(client), client._retrying

    def interruptible() -> Any:
        retries = retrying()
        retries._sleep = sleep
        return retries

    own.thread_local, own._retrying = local(), interruptible
    return own


def connect_responses(df: "DataFrame", client: Any) -> Any:
    """Run *df* on its server; return a generator of its schema and its Arrow tables."""
    plan = cast("Any", df)._plan
    return client.to_table_as_iterator(plan.to_proto(client), plan.observations)


# -- Python workers -------------------------------------------------------------------------------
_WORKER_MAIN: Final = "pyspark.worker"


def worker_output() -> BinaryIO | None:
    """Return the file by which a Python worker sends its result; None outside of a worker.

    The variable ``outfile`` of ``pyspark.worker.main``, since 1.0, which calls this.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") == _WORKER_MAIN:
            return cast("BinaryIO | None", frame.f_locals.get("outfile"))
        frame = frame.f_back
    return None
