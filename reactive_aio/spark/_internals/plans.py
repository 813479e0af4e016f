"""Private classes of Spark's plans, beside those of `_internals`: what a query reads, and how.

`dataset` is the JVM's Dataset of a DataFrame. Every function calls the JVM. Plans are trees:
``simpleString(int)``, ``toJSON()``, ``containsPattern(TreePattern)`` and ``children()`` of
``TreeNode``, ``deterministic()`` and ``subqueries()`` of ``QueryPlan``, since 3.5 at least;
``queryExecution()`` of a Dataset, since 1.3.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from . import java_class

if TYPE_CHECKING:
    from pyspark import SparkContext

_ALL_FIELDS: Final = 2**31 - 1
_EXPRESSION_ID: Final = re.compile(r"(?<![\s,])#\d+")  # it follows a name; a value seldom does
# In JSON no string of the user matches these: its quotes are escaped.
_ID_JSON: Final = re.compile(  # of expressions, which have a JVM, and of WITH and its loops
    r'"(id|cteId|loopId)":(\d+)(,"jvmId":"[^"]*")?'
)
_UNSTABLE_JSON: Final = re.compile(
    r'"(?:createTime|lastAccessTime)":-?\d+'  # of a view, which each process makes again
    r'|"dataframeId":\d+'  # of observe()
    r'|"value":"\[B@[0-9a-f]+"(?=,"dataType":"binary")'  # an address; the text has the bytes
)
_NUMBERED: Final = (  # nodes whose text has a number that is another one in each process
    "CollectMetrics",
    "CTERelationDef",
    "CTERelationRef",
    "UnionLoop",
    "UnionLoopRef",
)
_CREDENTIAL: Final = re.compile(
    r"secret|password|token|credential|access.?key|account.?key", re.IGNORECASE
)
_PLACES: Final = ("path", "paths")  # options; the listed files have their paths
_ACCESS_TIME: Final = re.compile(r"access_time=\d+; ?")
_MEMORYLESS: Final = ("Range", "OneRowRelation", "CTERelationRef")  # the query says everything
_ANY_ROWS: Final = ("GlobalLimit", "LocalLimit", "Offset", "Tail")
_QUERY_SETTINGS: Final = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
)
_LAYOUT_SETTINGS: Final = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.shuffle.partitions",
)
_WRAPPERS: Final = ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec")  # divide nothing
_NAME_IT: Final = "; if you know it, name it: checkpoint=Checkpoint(directory, snapshot='…')"


class Unrepeatable(Exception):
    """A plan may compute other rows, or other partitions, the next time; the message says why."""


def _kind(node: Any) -> str:
    return str(node.getClass().getName()).rpartition(".")[2]


def _sequence(scala: Any) -> Iterator[Any]:
    for position in range(scala.size()):
        yield scala.apply(position)


def _text(node: Any) -> str:
    return str(node.simpleString(_ALL_FIELDS))


# -- the query -------------------------------------------------------------------------------------
def require_deterministic(context: "SparkContext", dataset: Any) -> None:
    """Raise `Unrepeatable` if the query may have other rows the next time.

    ``TreePattern.CURRENT_LIKE``, since 3.2, marks ``now()``, ``current_user()`` and the like;
    ``SpecialDatetimeValues``, since 3.1, replaces strings such as 'today' that are cast.
    """
    catalyst = "org.apache.spark.sql.catalyst"
    current_like = java_class(context, f"{catalyst}.trees.TreePattern").CURRENT_LIKE()
    special_datetimes = java_class(context, f"{catalyst}.optimizer.SpecialDatetimeValues")
    plan = dataset.queryExecution().analyzed()
    nodes = [*_nodes(plan)]
    for node, children in nodes:
        if _kind(node) in _ANY_ROWS:
            raise Unrepeatable(f"{_text(node)} takes any rows, other ones the next time")
        if not node.deterministic() and all(child.deterministic() for child in children):
            raise Unrepeatable(f"an expression is not deterministic: {_text(node)}")
        if node.containsPattern(current_like):  # children come first, so it is in this node
            raise Unrepeatable(
                "now(), current_user() and the like have another value the next time; give the "
                f"value as a literal: {_text(node)}"
            )
    subqueries = (query for node, _ in nodes for query in _sequence(node.subqueries()))
    for query in (plan, *subqueries):
        if not special_datetimes.apply(query).fastEquals(query):
            raise Unrepeatable(
                "a cast of 'today', 'now' or the like has another value the next time; give it as "
                "a literal"
            )


def query_text(dataset: Any) -> str:
    """Return the whole query as text, the same in every process.

    JSON has each literal with its quotes and its type, and each expression by its number. The text
    of the nodes has what is missing there: names of tables, maps of options, bytes.
    """
    session, plan = dataset.sparkSession(), dataset.queryExecution().analyzed()
    lines = [f"{key} {_setting(session, key)}" for key in _QUERY_SETTINGS]
    lines.append(_json(plan))
    for node, children in _nodes(plan):
        kind = _kind(node)
        lines.append(kind if kind in _NUMBERED else _EXPRESSION_ID.sub("#", _text(node)))
        if not children:
            lines.extend(_reader_lines(node))
    return "\n".join(lines)


def _json(plan: Any) -> str:
    numbers = dict[tuple[str, bool], int]()

    def number(match: re.Match[str]) -> str:
        name, found, jvm = match.groups()
        return f'"{name}":{numbers.setdefault((found, jvm is None), len(numbers))}'

    return _ID_JSON.sub(number, _UNSTABLE_JSON.sub("", str(plan.toJSON())))


def _reader_lines(leaf: Any) -> Iterator[str]:
    """Yield how files are read: the schema, and the options without credentials."""
    if not _is_files(leaf):
        return
    relation = leaf.relation()
    yield str(relation.dataSchema().json())
    options = {
        str(option._1()).lower(): str(option._2())
        for option in _sequence(relation.options().toSeq())
    }
    for key in sorted(options):
        if key not in _PLACES and not _CREDENTIAL.search(key):
            yield f"{key!r}: {options[key]!r}"


def _is_files(leaf: Any) -> bool:
    return _kind(leaf) == "LogicalRelation" and _kind(leaf.relation()) == "HadoopFsRelation"


def _nodes(node: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yield the nodes of a logical plan and its subqueries, each after its children."""
    children = [*_sequence(node.children())]
    for child in (*children, *_sequence(node.subqueries())):
        yield from _nodes(child)
    yield node, children


# -- its input -------------------------------------------------------------------------------------
def list_files_again(dataset: Any) -> None:
    """Let Spark list the files of the query, which it does once for a DataFrame.

    ``FileIndex.refresh()``, since 2.1. What is planned afterwards reads the files as they are now,
    and `input_text` identifies the same ones.
    """
    for node, children in _nodes(dataset.queryExecution().analyzed()):
        if not children and _is_files(node):
            with _listing(node):
                node.relation().location().refresh()


@contextmanager
def _listing(leaf: Any) -> Generator[None, None, None]:
    try:
        yield
    except Exception as error:
        raise Unrepeatable(
            f"the files of {_text(leaf)} cannot be listed ({error}){_NAME_IT}"
        ) from error


def require_uncached(dataset: Any) -> None:
    """Raise `Unrepeatable` if a part of the query is cached: of other input, or otherwise divided.

    ``QueryExecution.withCachedData()``, since 1.3.
    """
    for node, _ in _nodes(dataset.queryExecution().withCachedData()):
        if _kind(node) == "InMemoryRelation":
            raise Unrepeatable(
                "cache() or persist() holds a part of it, whose input may have changed since; "
                "unpersist() it"
            )


def input_text(dataset: Any) -> str:
    """Return what identifies the data that the query reads: files by their size and their time.

    Raises `Unrepeatable` for a source whose data has no such mark.
    """
    found = list[str]()
    for node, children in _nodes(dataset.queryExecution().analyzed()):
        if not children:
            found.append(_leaf_text(node))
    return "\n".join(found)


def _leaf_text(leaf: Any) -> str:
    kind = _kind(leaf)
    if kind in _MEMORYLESS:
        return kind
    if kind == "LocalRelation":
        return f"{kind} {leaf.data().size()} {leaf.data().hashCode()}"
    if _is_files(leaf):
        with _listing(leaf):
            files = str(leaf.relation().location().allFiles().mkString("\n"))
        listed = sorted(_ACCESS_TIME.sub("", line) for line in files.splitlines())
        return f"{len(listed)} files {sha256(chr(10).join(listed).encode()).hexdigest()}"
    raise Unrepeatable(
        f"the version of the data that {_text(leaf)} ({kind}) reads is unknown{_NAME_IT}"
    )


# -- its partitions --------------------------------------------------------------------------------
def layout_text(dataset: Any, partitions: int) -> str:
    """Return what decides which rows each of the *partitions* has, besides query and input.

    Raises `Unrepeatable` if Spark may choose other ones the next time.
    """
    session = dataset.sparkSession()
    plan = dataset.queryExecution().executedPlan()
    is_adaptive = _kind(plan) == "AdaptiveSparkPlanExec"
    lines = [*_division(plan.initialPlan() if is_adaptive else plan, is_adaptive)]
    physical_plan = sha256("\n".join(lines).encode()).hexdigest()[:16]
    settings = {key: _setting(session, key) for key in _LAYOUT_SETTINGS}
    parallelism = session.sparkContext().defaultParallelism()
    version = ".".join(str(session.version()).split(".")[:2])
    parts = {
        "partitions": partitions,
        "parallelism": parallelism,
        "Spark": version,
        "physical plan": physical_plan,
        **settings,
    }
    return ", ".join(f"{key} {value}" for key, value in parts.items() if value != "")


def _setting(session: Any, key: str) -> str:
    found = session.conf().getOption(key)
    return str(found.get()) if found.isDefined() else ""


def _division(node: Any, is_adaptive: bool) -> Iterator[str]:
    """Yield a line for each operator that may divide rows into partitions: joins and shuffles.

    ``SparkPlan.outputPartitioning()``, since 1.0. Raises `Unrepeatable` for an unstable shuffle.
    """
    kind = _kind(node)
    partitioning = str(node.outputPartitioning().toString())
    if kind == "ShuffleExchangeExec":
        _require_stable_shuffle(partitioning, node.shuffleOrigin().toString(), is_adaptive)
    children = [*_sequence(node.children())]
    if kind not in _WRAPPERS:
        text = _text(node) if kind.endswith("JoinExec") else ""  # the kind, and the built side
        line = f"{kind} {len(children)} {partitioning} {text}"
        yield _EXPRESSION_ID.sub("#", line)
    if kind != "BroadcastExchangeExec":  # whose partitions do not matter: tasks receive all of it
        for child in children:
            yield from _division(child, is_adaptive)


def _require_stable_shuffle(partitioning: str, origin: str, is_adaptive: bool) -> None:
    if partitioning.startswith("range"):
        raise Unrepeatable(
            f"the limits of its partitions are drawn from a sample ({partitioning}), as "
            "orderBy() and repartitionByRange() do"
        )
    if is_adaptive and origin != "REPARTITION_BY_NUM":
        raise Unrepeatable(
            f"Spark merges its partitions by the sizes that it measures ({partitioning}); it "
            "does not with spark.sql.adaptive.enabled=false"
        )
