"""Private names of Spark's JVM by which some partitions are computed as one job, and served.

They are beside those of `_internals`. A served job is an address, its secret, and a server, whose
``getResult()`` raises unless everything was sent.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from . import call_plainly, has_method, java_class, release

if TYPE_CHECKING:
    from pyspark import SparkContext

ServedJob = tuple[Any, Any, Any]
RunJob = Callable[[Any, Sequence[int]], ServedJob]
"""Computes partitions of an RDD of bytes as one job; blocks until it is done."""

_PACKAGE: Final = "org.apache.spark.api.python"


def job_runner(context: "SparkContext") -> RunJob:
    """Return a function that computes partitions, whose elements are served one after another.

    ``PythonRDD.runJob(SparkContext, JavaRDD, ArrayList)``, since 1.0, the JVM's half of
    ``SparkContext.runJob``; since 3.0 it returns these three. Py4J's look-ups are made once, here.
    """
    untyped: Any = context
    java_context = untyped._jsc.sc()
    run_job = java_class(context, f"{_PACKAGE}.PythonRDD").runJob
    new_list = java_class(context, "java.util.ArrayList")

    def run(rdd: Any, partitions: Sequence[int]) -> ServedJob:
        numbers = new_list()
        for each in partitions:
            numbers.add(each)
        return _served(context, call_plainly(run_job, java_context, rdd, numbers))

    return run


def marking_job_runner(context: "SparkContext") -> RunJob:
    """Return the same, where a null follows the elements of each partition: the length -5.

    The two halves of ``PythonRDD.runJob``, with the nulls between them:
    ``JavaRDD.collectPartitions``, public since 1.0, and ``PythonRDD.serveIterator(Iterator,
    String)``, since 2.2; besides ``PythonUtils.toSeq(List)``, since 1.4. What is collected remains
    in the JVM, as with ``runJob``. It costs some ten calls for each partition, about a millisecond.
    """
    untyped: Any = context
    gateway = untyped._gateway
    serve = java_class(context, f"{_PACKAGE}.PythonRDD").serveIterator
    to_sequence = java_class(context, f"{_PACKAGE}.PythonUtils").toSeq
    new_list = java_class(context, "java.util.ArrayList")
    arrays = java_class(context, "java.lang.reflect.Array")
    get, set_int = arrays.get, arrays.setInt  # Py4J's arrays ask for their length each time
    int_class = java_class(context, "int")

    def run(rdd: Any, partitions: Sequence[int]) -> ServedJob:
        numbers = gateway.new_array(int_class, len(partitions))
        for position, each in enumerate(partitions):
            set_int(numbers, position, each)
        collected, elements = call_plainly(rdd.collectPartitions, numbers), new_list()
        for position in range(len(partitions)):
            partition = get(collected, position)
            elements.addAll(partition)
            elements.add(None)
            release(context, partition)
        sequence = to_sequence(elements)
        iterator = sequence.iterator()
        served = serve(iterator, "serve the partitions of a flow")
        # What holds the elements, which would outlive their server.
        release(context, numbers, collected, elements, sequence, iterator)
        return _served(context, served)

    return run


def _served(context: "SparkContext", served: Any) -> ServedJob:
    parts = served[0], served[1], served[2]  # tuple() would make a fourth call
    release(context, served)
    return parts


_MARKING_CALLS: Final = {  # methods, and the types of their parameters
    f"{_PACKAGE}.PythonRDD.serveIterator": "scala.collection.Iterator java.lang.String",
    f"{_PACKAGE}.PythonUtils.toSeq": "java.util.List",
}


def missing_marking_call(context: "SparkContext") -> str | None:
    """Name the first JVM method that `marking_job_runner` lacks, or return None."""
    for method, parameters in _MARKING_CALLS.items():
        if not has_method(context, method, parameters):
            return f"this version of Spark has no {'.'.join(method.split('.')[-2:])}"
    return None
