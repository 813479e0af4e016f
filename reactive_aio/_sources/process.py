"""A source that runs a program."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .._core.child_process import ChildProcess, Command
from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled
from .._core.foreign_text import without_secrets
from .._shared.coerce import Source, to_flow
from ..errors import Interrupted, ProcessFailed
from ..stage import (
    Coordinator,
    Duration,
    InnerSubscriber,
    describe,
    from_push,
    to_seconds,
)

if TYPE_CHECKING:
    from .._core.loop import Future, Task
    from ..flow import Flow

__all__ = ("from_process",)


def from_process(
    argv: "Sequence[str | os.PathLike[str]]",
    *,
    stdin: bytes | Source[bytes] | None = None,
    cwd: "str | os.PathLike[str] | None" = None,
    env: Mapping[str, str] | None = None,
    start_new_session: bool = False,
    grace: Duration = 5.0,
) -> "Flow[bytes]":
    """Emit what a program writes to its standard output, in chunks of bytes.

    ``from_process(["git", "log", "--oneline"]).lines()`` is a flow of lines. Each subscription runs
    the program *argv*, without a shell, on Unix. *stdin* is what the program reads: bytes, or a
    flow, a publisher, an iterable or an asynchronous iterable of bytes; nothing by default. Of a
    source, one element is requested when the one before has been read. *cwd*, *env* and
    *start_new_session* are those of ``subprocess.Popen``; with a session of its own, the signals
    below are sent to all processes of its group.

    Demand: read from the pipe, one chunk for one requested, of at most 64 KiB. Without demand,
        nothing is read, and the program waits when the pipe is full.
    Completes: when the program has closed its output and exited with status 0, which shows only
        when one more chunk is requested.
    Fails: with `ProcessFailed`, which has the end of its standard error, when it exits with another
        status or by a signal; when it cannot be started; when the source of *stdin* fails, which
        ends the program.
    Cancels: the program is asked to terminate (SIGTERM), and killed after *grace* seconds;
        ``aclose`` waits until it has ended. The source of *stdin* is cancelled, as it is when the
        program closes its input.
    Holds: 1 chunk, and of *stdin* 1 element.
    Rules: 1.1, 1.4, 3.13
    """
    if sys.platform == "win32":
        raise NotImplementedError(
            "from_process: it runs on Unix, where asyncio can watch the pipes of a program; on "
            "Windows, from_thread can read the output of subprocess.Popen"
        )
    command = Command(
        _require_argv(argv),
        None if cwd is None else os.fspath(cwd),
        None if env is None else dict(env),
        stdin is not None,
        start_new_session,
        to_seconds(grace, "from_process: grace", zero=True),
    )
    given = _require_stdin(stdin)
    return from_push(
        lambda downstream: _Running(downstream, command, given),
        name=f"from_process({without_secrets(shlex.join(command.argv))!r})",
        holds=1 if isinstance(given, bytes) else 2,
        checked=True,
        upstreams=() if isinstance(given, bytes) else (given,),
        window=1,
        one_by_one=False,
        contents=1,
    )


def _require_argv(argv: Any) -> tuple[str, ...]:
    if isinstance(argv, str):
        raise TypeError(
            f"from_process: argv must be a list, such as {argv.split()!r}, not the string {argv!r};"
            f" shlex.split({argv!r}) makes one"
        )
    words = [_word(each) for each in argv] if isinstance(cast("object", argv), Sequence) else []
    if all(words[:1]) and words and None not in words:
        return tuple(cast("list[str]", words))
    raise TypeError(
        "from_process: argv must be a list of the program and its arguments, each a str or a path, "
        f"not {describe(argv)}"
    )


def _word(word: Any) -> str | None:
    text: Any = os.fspath(word) if isinstance(word, str) or hasattr(word, "__fspath__") else None
    return text if isinstance(text, str) else None


def _require_stdin(stdin: Any) -> "bytes | Flow[bytes]":
    if stdin is None:
        return b""
    if isinstance(cast("object", stdin), (bytes, bytearray, memoryview)):
        return bytes(stdin)
    if isinstance(cast("object", stdin), str):
        raise TypeError("from_process: stdin must be bytes, not str; encode it: text.encode()")
    return to_flow(stdin, name="from_process: stdin")


@dataclass(eq=False, repr=False)
class _Running(Coordinator[bytes]):
    """One run of the program, for one subscription."""

    _command: Command
    _given: "bytes | Flow[bytes]"
    _task: "Task[None] | None" = None
    _input: "InnerSubscriber[Any] | None" = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._process = ChildProcess(
            self.loop_handle,
            self._command,
            lambda chunk: self.submit(self._on_output, chunk),
            lambda: self.submit(self._feed),
            lambda: self.submit(self._on_input_lost),
        )

    # -- its life ---------------------------------------------------------------------------------
    def on_start(self) -> None:
        name = f"the process of {self._command.argv[0]}"
        self._task = self.loop_handle.create_task(self._run(), name)

    async def _run(self) -> None:
        """Start the program, and stay until it has ended."""
        try:
            await self._process.start()
            self.submit(self._begin)
            returncode = await self._process.wait()
            await self._process.release()
        except GeneratorExit:
            raise  # the loop is closed, so that nothing can be awaited
        except BaseException as error:
            was_cancelled = is_cancelled(self._task, error)
            self._failed(
                Interrupted("the task of a process was cancelled") if was_cancelled else error
            )
            await self._process.release()
            if was_cancelled or isinstance(error, STOPS_PROGRAM):
                raise
        else:
            self._task = None  # it ends with the following
            self.submit(self._exited, returncode)

    def _failed(self, error: BaseException) -> None:
        if not self.is_closed:
            self.submit(self.fail, as_failure(error))

    def _begin(self) -> None:
        if self.is_closed:
            self._process.stop()
            return
        self._read()
        if not self._command.has_input:
            return
        if isinstance(self._given, bytes):
            self._process.input.write(self._given)
            self._process.input.end()
        else:
            self._input = self.subscribe_to(self._given, request=1)

    def on_stop(self) -> None:
        self._process.stop()

    def stop_source(self) -> bool:
        """A program that reads a flow ends by itself when that has ended; any other is stopped."""
        return self._input is not None

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        return [*super().tasks, *(() if self._task is None else (self._task,))]

    # -- output -----------------------------------------------------------------------------------
    def on_demand(self) -> None:
        self._read()

    def _on_output(self, chunk: bytes) -> None:
        self.emit([chunk])
        self._read()

    def _read(self) -> None:
        self._process.read(self.demand.outstanding > 0)

    def _exited(self, returncode: int) -> None:
        if self.is_closed:
            return
        if returncode:
            self.fail(ProcessFailed(self._command.argv, returncode, bytes(self._process.stderr)))
        else:
            self.complete()

    # -- input ------------------------------------------------------------------------------------
    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._feed()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._feed()

    def _feed(self) -> None:
        """Write the next element when the one before has been read."""
        inner, stdin = self._input, self._process.input
        if inner is None or self.is_closed or not stdin.has_room():
            return
        for chunk in inner.take(1):
            if not isinstance(cast("object", chunk), (bytes, bytearray, memoryview)):
                raise TypeError(
                    f"from_process: the elements of stdin must be bytes, not {describe(chunk)} "
                    f"({type(chunk).__name__}); for text: map(str.encode)"
                )
            stdin.write(bytes(chunk))
        if inner.is_done and not inner.elements:
            self._input = None
            stdin.end()
        elif not inner.outstanding and stdin.has_room():
            inner.request(1)

    def _on_input_lost(self) -> None:
        """The program reads no more: it has closed its input, or exited."""
        inner, self._input = self._input, None
        if inner is not None:
            self.release(inner)
