"""Private classes of Spark's plans, beside those of `_internals`: what a query reads, and how.

`dataset` is the JVM's Dataset of a DataFrame. Every function calls the JVM. Plans are trees:
``simpleString(int)`` and ``children()`` of ``TreeNode``, ``deterministic()`` and ``subqueries()``
of ``QueryPlan``, since 3.5 at least; ``queryExecution()`` of a Dataset, since 1.3.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

_ALL_FIELDS: Final = 2**31 - 1
_EXPRESSION_ID: Final = re.compile(r"#\d+")
_ACCESS_TIME: Final = re.compile(r"access_time=\d+; ?")
_MEMORYLESS: Final = ("Range", "OneRowRelation")  # leaves whose text says everything
_ANY_ROWS: Final = ("GlobalLimit", "LocalLimit", "Offset", "Tail")
_LAYOUT_SETTINGS: Final = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.shuffle.partitions",
)


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
def require_deterministic(dataset: Any) -> None:
    """Raise `Unrepeatable` if the query may have other rows the next time."""
    for node, children in _nodes(dataset.queryExecution().analyzed()):
        if _kind(node) in _ANY_ROWS:
            raise Unrepeatable(f"{_text(node)} takes any rows, other ones the next time")
        if not node.deterministic() and all(child.deterministic() for child in children):
            raise Unrepeatable(f"an expression is not deterministic: {_text(node)}")


def query_text(dataset: Any) -> str:
    """Return the whole query as text, the same in every process."""
    numbers = dict[str, str]()

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match.group(), f"#{len(numbers)}")

    lines = [_text(node) for node, _ in _nodes(dataset.queryExecution().analyzed())]
    return _EXPRESSION_ID.sub(number, "\n".join(lines))


def _nodes(node: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yield the nodes of a logical plan and its subqueries, each after its children."""
    children = [*_sequence(node.children())]
    for child in (*children, *_sequence(node.subqueries())):
        yield from _nodes(child)
    yield node, children


# -- its input -------------------------------------------------------------------------------------
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
    if kind == "LogicalRelation" and _kind(leaf.relation()) == "HadoopFsRelation":
        location = leaf.relation().location()
        try:
            files = str(location.allFiles().mkString("\n"))
        except Exception as error:
            raise Unrepeatable(
                f"the files of {_text(leaf)} cannot be listed ({error}){_NAME_IT}"
            ) from error
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
    _require_stable_shuffles(plan.initialPlan() if is_adaptive else plan, is_adaptive)
    settings = {key: _setting(session, key) for key in _LAYOUT_SETTINGS}
    parallelism = session.sparkContext().defaultParallelism()
    version = ".".join(str(session.version()).split(".")[:2])
    parts = {"partitions": partitions, "parallelism": parallelism, "Spark": version, **settings}
    return ", ".join(f"{key} {value}" for key, value in parts.items() if value != "")


def _setting(session: Any, key: str) -> str:
    found = session.conf().getOption(key)
    return str(found.get()) if found.isDefined() else ""


def _require_stable_shuffles(node: Any, is_adaptive: bool) -> None:
    kind = _kind(node)
    if kind == "BroadcastExchangeExec":
        return  # whichever partitions it has: each task receives all of it
    if kind == "ShuffleExchangeExec":
        partitioning, origin = node.outputPartitioning().toString(), node.shuffleOrigin().toString()
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
    for child in _sequence(node.children()):
        _require_stable_shuffles(child, is_adaptive)
