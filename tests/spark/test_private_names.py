"""The private names of PySpark and of Spark's JVM that the package uses, by version.

Each is touched in `_internals` and nowhere else. A name that a new version lacks fails here, with
the name; what depends on it is in the docstring of the function that uses it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import reactive_aio.spark
from reactive_aio.spark._internals import java_class
from reactive_aio.spark.spark_version import OLDEST, pyspark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(reactive_aio.spark.__file__).parent
INTERNALS = ROOT / "_internals"
SQL: Final = "org.apache.spark.sql"
STREAMING: Final = f"{SQL}.execution.streaming"
PYTHON: Final = "org.apache.spark.api.python"

# An attribute, and of what; all of them are there since the oldest version.
ATTRIBUTES: Final = {
    "_accumulatorServer": "context", "_active_spark_context": "context", "_gateway": "context",
    "_jsc": "context", "_jvm": "context", "_lock": "context", "_gateway_client": "gateway",
    "_serialize_to_jvm": "context", "_jsparkSession": "session", "_jdf": "dataframe",
    "_fqn": "Java class", "_target_id": "dataset",
    # Their tests are beside: they need a query, a server, an iterator, or an older version.
    "_jsq": "", "_plan": "", "_retrying": "", "_sleep": "", "_error_class": "",
    "_read_status": "", "_serializer": "", "_sock": "", "_sockfile": "",
}  # fmt: skip
# Not of Spark: Scala's pairs, and the frames of Python.
OTHERS: Final = {"_1", "_2", "_getframe"}

# Methods of the JVM's classes that are public there and private to Spark, and their first version.
METHODS: Final = {
    f"{PYTHON}.PythonRDD.runJob": OLDEST,
    f"{PYTHON}.PythonRDD.serveIterator": OLDEST,
    f"{PYTHON}.PythonUtils.toSeq": OLDEST,
    f"{SQL}.api.python.PythonSQLUtils.readArrowStreamFromFile": OLDEST,
    f"{SQL}.api.python.PythonSQLUtils.toDataFrame": OLDEST,
    f"{SQL}.classic.Dataset.ofRows": (4, 0),
    f"{SQL}.classic.Dataset.toArrowBatchRdd": (4, 0),
    f"{SQL}.classic.SparkSession.managedJobTags": (4, 0),
    f"{SQL}.classic.SparkSession.observationManager": (4, 0),
    f"{SQL}.classic.SparkSession.sessionJobTag": (4, 0),
    f"{SQL}.classic.SparkSession.setActiveSession": (4, 0),
    f"{SQL}.classic.ObservationManager.tryComplete": (4, 0),
    f"{SQL}.execution.QueryExecution.withCachedData": OLDEST,
    f"{SQL}.execution.SparkPlan.outputPartitioning": OLDEST,
    f"{SQL}.catalyst.plans.QueryPlan.subqueries": OLDEST,
    f"{SQL}.catalyst.trees.TreeNode.containsPattern": OLDEST,
    f"{STREAMING}.runtime.StreamExecution.lastExecution": (4, 1),
    f"{STREAMING}.runtime.StreamExecution.noNewData": (4, 1),
    f"{STREAMING}.runtime.StreamingQueryWrapper.streamingQuery": (4, 1),
}


def private_names(file: Path) -> Iterator[str]:
    """Yield the private attributes of anything but ``self`` and ``cls``."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            if not is_own and not node.attr.startswith("__"):
                yield node.attr


def test_nothing_else_touches_private_names() -> None:
    found = {
        str(file.relative_to(ROOT)): names
        for file in ROOT.rglob("*.py")
        if INTERNALS not in file.parents and (names := [*private_names(file)])
    }
    assert not found


def test_each_private_attribute_is_listed() -> None:
    found = {name for file in INTERNALS.glob("*.py") for name in private_names(file)}
    assert found == {*ATTRIBUTES, *OTHERS}


@pytest.mark.spark
def test_this_version_has_the_attributes(spark: "SparkSession") -> None:
    context: Any = spark.sparkContext
    df: Any = spark.range(1)
    owners = {
        "context": context,
        "gateway": context._gateway,
        "session": spark,
        "dataframe": df,
        "dataset": df._jdf,
        "Java class": java_class(context, "java.lang.String"),
    }
    missing = [
        f"{owner} {name}"
        for name, owner in ATTRIBUTES.items()
        if owner and name not in {*dir(owners[owner]), *vars(owners[owner])}
    ]
    assert not missing


@pytest.mark.spark
def test_this_version_has_the_methods_of_the_jvm(spark: "SparkSession") -> None:
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    missing = list[str]()
    for path, since in METHODS.items():
        owner, _, name = path.rpartition(".")
        if pyspark_version() >= since:
            methods = loader.loadClass(owner).getMethods()
            if name not in {each.getName() for each in methods}:
                missing.append(path)
    assert not missing
