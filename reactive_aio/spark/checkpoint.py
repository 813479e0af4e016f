"""Which partitions of a DataFrame have been processed, so that a crash repeats only the others."""

import json
import os
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from inspect import isawaitable, iscoroutine
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, SupportsIndex, cast, runtime_checkable
from uuid import uuid4

from .._core.arguments import require_sync_callable
from .._core.compiler.inline import describe
from ..errors import ReactiveError
from ._internals import java_dataset
from ._internals.plans import (
    Unrepeatable,
    input_text,
    layout_text,
    list_files_again,
    query_text,
    require_deterministic,
    require_uncached,
)
from .errors import UnsupportedDataFrame, explained
from .whole_writes import write_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FUNCTION: Final = "from_dataframe"
_ON_THREADS: Final = "it is called on a thread, and may block"
_FILE: Final = "partitions.jsonl"
_REMEDY: Final = (
    "Give another checkpoint for this one; or delete that one to process every row again."
)


class CheckpointMismatch(ReactiveError, ValueError):
    """The checkpoint is of another query, or of other input; the message says what differs."""


@dataclass(frozen=True, slots=True)
class PlanIdentity:
    """What must be the same for a partition number to mean the same rows."""

    query: str
    """A digest of the query, and of the settings that decide its rows."""
    input: str
    """A digest of the input: of the files with their sizes and times, or the *snapshot*."""
    layout: str
    """How the rows are divided: the number of partitions, and what decides it: settings, a digest
    of the joins and shuffles."""

    @property
    def key(self) -> str:
        """All of it as 64 letters, for stores that keep several plans."""
        return digest("\n".join((self.query, self.input, self.layout)))


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@runtime_checkable
class CheckpointStore(Protocol):
    """Remembers partitions. Its methods are called on threads, and may block.

    Calls for one subscription come one after another, except that `commit` may be called for
    several partitions at the same time.
    """

    def load(self, identity: PlanIdentity, /) -> Collection[int]:
        """Return the partitions that were committed for this identity, the first time none.

        Raises `CheckpointMismatch` if the store is of another one, and keeps only one.
        """
        ...

    def commit(self, identity: PlanIdentity, partition: int, /) -> None:
        """Remember *partition*, durably: when this returns, a crash does not forget it."""
        ...


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where `from_dataframe` remembers the partitions that were processed.

    *store* is a local directory, or a `CheckpointStore`. *snapshot* names the version of the input
    where Spark cannot tell it, as for a table of a database: the caller states that two runs with
    the same *snapshot* read the same rows in the same partitions.
    """

    store: "str | PathLike[str] | CheckpointStore"
    snapshot: str | None = None

    def opened(self) -> CheckpointStore:
        """Return the store. Raises if that is neither a store nor a possible directory."""
        _require_name(self.snapshot)
        store = cast("object", self.store)
        if isinstance(store, str | PathLike):
            return DirectoryStore(_require_directory(fspath(cast("str | PathLike[str]", store))))
        if isinstance(store, type) or not isinstance(store, CheckpointStore):
            raise TypeError(
                f"{_FUNCTION}: checkpoint= must be a directory (str or Path), a Checkpoint of one, "
                f"or an object with the methods load and commit, not {describe(store)} "
                f"({type(store).__name__})"
            )
        for method, takes in (("load", 1), ("commit", 2)):
            function = getattr(store, method)
            require_sync_callable(
                _FUNCTION, f"checkpoint.{method}", function, _ON_THREADS, takes=takes
            )
        return store


def _require_name(snapshot: object) -> None:
    if snapshot is not None and not isinstance(snapshot, str):
        kind = type(snapshot).__name__
        raise TypeError(
            f"Checkpoint: snapshot must be a str, the name of a version of the input, not "
            f"{describe(snapshot)} ({kind})"
        )
    if snapshot == "":
        raise ValueError("Checkpoint: snapshot='' names no version of the input")


def _require_directory(path: str | bytes) -> Path:
    if isinstance(path, bytes):
        raise TypeError(f"{_FUNCTION}: checkpoint={path!r} must be a str or a Path, not bytes")
    if not path:
        raise ValueError(f"{_FUNCTION}: checkpoint='' names no directory; for this one give '.'")
    if "://" in path:
        raise ValueError(
            f"{_FUNCTION}: checkpoint={path!r} is not a local directory; for another place "
            "give a CheckpointStore, which loads and commits partitions there"
        )
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{_FUNCTION}: checkpoint={path!r} is a file, and must be a directory")
    return directory


def load_partitions(store: CheckpointStore, identity: PlanIdentity) -> frozenset[int]:
    """Return the partitions that *store* has committed. Raises unless they are numbers."""
    found = cast("object", store.load(identity))
    _refuse_awaitable("load", found)
    if not isinstance(found, Iterable):
        raise _wrong_partitions(found)
    numbers = set[int]()
    for each in cast("Iterable[object]", found):
        if not isinstance(each, SupportsIndex):
            raise _wrong_partitions(each, "a collection with ")
        numbers.add(index(each))
    return frozenset(numbers)


def _wrong_partitions(value: object, where: str = "") -> TypeError:
    return TypeError(
        f"{_FUNCTION}: checkpoint.load must return the committed partitions, a collection of int, "
        f"and returned {where}{describe(value)} ({type(value).__name__})"
    )


def commit_partition(store: CheckpointStore, identity: PlanIdentity, partition: int) -> None:
    """Commit *partition*. Raises if *store* has only made an awaitable for it."""
    _refuse_awaitable("commit", cast("object", store.commit(identity, partition)))


def _refuse_awaitable(method: str, result: object) -> None:
    if isawaitable(result):
        if iscoroutine(result):
            result.close()
        raise TypeError(
            f"{_FUNCTION}: checkpoint.{method} returned {describe(result)} "
            f"({type(result).__name__}), which nothing awaits; {_ON_THREADS}"
        )


@dataclass(frozen=True, slots=True)
class DirectoryStore:
    """A file in a local directory: what it is of, and a line for each partition."""

    directory: Path

    @property
    def _path(self) -> Path:
        return self.directory / _FILE

    def load(self, identity: PlanIdentity) -> Collection[int]:
        if not self._path.exists():
            self._create(identity)
        content = self._path.read_bytes()
        # A crash may have cut the last line; the next line must not continue it.
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(self._path, len(whole))
        try:
            first, *lines = whole.splitlines()
            found = PlanIdentity(**json.loads(first))
            committed = {int(line) for line in lines}
        except (ValueError, TypeError) as error:
            raise CheckpointMismatch(
                f"{self._path} is not a checkpoint of from_dataframe ({error}). {_REMEDY}"
            ) from error
        require_same(str(self.directory), found, identity)
        return committed

    def _create(self, identity: PlanIdentity) -> None:
        """Create the file with its first line, unless another subscription does at the same time.

        The line is written to a draft before, so that no crash leaves half of it.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{uuid4().hex}")
        try:
            with draft.open("xb") as file:
                file.write(json.dumps(asdict(identity)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            _publish(draft, self._path)
        finally:
            draft.unlink(missing_ok=True)
        with suppress(OSError):  # not every system opens directories
            number = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def commit(self, identity: PlanIdentity, partition: int) -> None:
        with self._path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                write_all(file, b"%d\n" % partition)  # one call, unless the disk is full
            except OSError as error:
                file.truncate(before)  # or the next line would continue it: another number
                error.filename = str(self._path)
                raise
            os.fsync(file.fileno())


def _publish(draft: Path, path: Path) -> None:
    """Give *draft* its name, unless there is a file of that name, which may have commits."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        os.replace(draft, path)


_PARTS: Final = {
    "query": "the query is another one",
    "input": "the input has changed since",
    "layout": "the rows are divided otherwise",
}


def require_same(place: str, found: PlanIdentity, identity: PlanIdentity) -> None:
    """Raise `CheckpointMismatch` unless both are the same."""
    before, now = asdict(found), asdict(identity)
    different = [part for part in _PARTS if before[part] != now[part]]
    if different:
        what = ", and ".join(_PARTS[part] for part in different)
        details = _details(before["layout"], now["layout"]) if "layout" in different else ""
        raise CheckpointMismatch(
            f"the checkpoint {place} cannot be used: {what}{details}. {_REMEDY}"
        )


def _details(before: str, now: str) -> str:
    """Show those items of two layouts that differ."""
    items, others = before.split(", "), now.split(", ")
    left = ", ".join(each for each in items if each not in others)
    right = ", ".join(each for each in others if each not in items)
    return f" ({left}; now {right})"


# -- one subscription -----------------------------------------------------------------------------
def require_repeatable(df: "DataFrame", checkpoint: Checkpoint) -> None:
    """Raise `UnsupportedDataFrame` if *df* may have other rows the next time. Calls the JVM."""
    with explained(df), _refused():
        dataset = java_dataset(df)
        require_deterministic(df.sparkSession.sparkContext, dataset)
        planned = java_dataset(df.alias("from_dataframe"))  # *df* would keep its plan
        require_uncached(planned)
        layout_text(planned, 0)
        if checkpoint.snapshot is None:
            input_text(dataset)


@contextmanager
def _refused() -> Generator[None, None, None]:
    try:
        yield
    except Unrepeatable as error:
        raise UnsupportedDataFrame(
            f"from_dataframe(checkpoint=…) cannot resume this DataFrame: {error}. Write its "
            "result with df.write first, and read that."
        ) from error


@dataclass(eq=False)
class Resume:
    """The checkpoint of one subscription. Its methods block, and are called on threads."""

    checkpoint: Checkpoint
    partitions: Sequence[int] = field(default=(), init=False)
    """Those that are not committed."""
    committed: int = field(default=0, init=False)
    """How many others there are."""
    _store: CheckpointStore | None = field(default=None, init=False)
    _identity: PlanIdentity | None = field(default=None, init=False)

    def list_files_again(self, df: "DataFrame") -> None:
        """Look at the input files of *df* before it is planned: they may have changed."""
        if self.checkpoint.snapshot is None:
            with _refused():
                list_files_again(java_dataset(df))

    def begin(self, dataset: Any, partitions: int) -> int:
        """Look up what is committed; return how many partitions remain."""
        snapshot = self.checkpoint.snapshot
        with _refused():
            require_uncached(dataset)
            data = input_text(dataset) if snapshot is None else f"snapshot {snapshot}"
            layout = layout_text(dataset, partitions)
            self._identity = PlanIdentity(digest(query_text(dataset)), digest(data), layout)
        self._store = self.checkpoint.opened()
        committed = load_partitions(self._store, self._identity)
        self.partitions = [each for each in range(partitions) if each not in committed]
        self.committed = partitions - len(self.partitions)
        return len(self.partitions)

    def number(self, position: int) -> int:
        """Return the number of the partition at *position* of `partitions`."""
        return self.partitions[position]

    def commit(self, position: int) -> None:
        """Commit the partition at *position* of `partitions`."""
        assert self._store is not None, "the query was planned"
        assert self._identity is not None
        commit_partition(self._store, self._identity, self.partitions[position])
