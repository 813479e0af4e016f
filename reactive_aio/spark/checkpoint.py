"""Which partitions of a DataFrame have been processed, so that a crash repeats only the others."""

import json
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from ..errors import ReactiveError

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
    """A digest of the query."""
    input: str
    """A digest of the input: of the files with their sizes and times, or the *snapshot*."""
    layout: str
    """How the input is divided: the number of partitions, and the settings that decide it."""

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
        """Return the store."""
        if isinstance(self.store, CheckpointStore):
            return self.store
        path = fspath(self.store)
        if "://" in path:
            raise ValueError(
                f"from_dataframe: checkpoint={path!r} is not a local directory; for another place "
                "give a CheckpointStore, which loads and commits partitions there"
            )
        return DirectoryStore(Path(path))


@dataclass(frozen=True, slots=True)
class DirectoryStore:
    """A file in a local directory: what it is of, and a line for each partition."""

    directory: Path

    @property
    def _path(self) -> Path:
        return self.directory / _FILE

    def load(self, identity: PlanIdentity) -> Collection[int]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            self._create(identity)
            return ()
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
        self.directory.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{os.getpid()}")
        with draft.open("wb") as file:
            file.write(json.dumps(asdict(identity)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._path)  # atomic: no crash leaves half of the first line
        with suppress(OSError):  # not every system opens directories
            number = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)

    def commit(self, identity: PlanIdentity, partition: int) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(b"%d\n" % partition)  # one call, and so one piece
            os.fsync(file.fileno())


_PARTS: Final = {
    "query": "the query is another one",
    "input": "the input has changed since",
    "layout": "the input is divided otherwise",
}


def require_same(place: str, found: PlanIdentity, identity: PlanIdentity) -> None:
    """Raise `CheckpointMismatch` unless both are the same."""
    before, now = asdict(found), asdict(identity)
    different = [part for part in _PARTS if before[part] != now[part]]
    if different:
        what = ", and ".join(_PARTS[part] for part in different)
        details = f" ({before['layout']}; now {now['layout']})" if "layout" in different else ""
        raise CheckpointMismatch(
            f"the checkpoint {place} cannot be used: {what}{details}. {_REMEDY}"
        )
