"""ChildProcess: a program that runs, with its pipes.

Its input and its output are pipes that are written and read here, when the event loop says that
they are ready. What anyio and asyncio offer for the output reads ahead: their streams fill a
buffer, and asyncio's transport reads several times before it can be paused. Their transports for
the input differ from loop to loop: asyncio's loses what it holds when it is closed while it reports
room, and uvloop's fails when the program ends without reading.
"""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from subprocess import DEVNULL, PIPE
from typing import Any, Final, cast
from weakref import ref

from .loop import (
    CancelledError,
    Future,
    LoopHandle,
    SubprocessProtocol,
    SubprocessTransport,
    TimerHandle,
    shield,
    timeout,
    wait_settled,
)

__all__ = ("ChildProcess", "Command")

CHUNK: Final = 65_536
"""The most bytes that are read from stdout at a time."""

STDERR_TAIL: Final = 65_536
"""How many of the last bytes written to stderr are kept."""
_STDERR_ENDS_WITHIN: Final = 1.0
"""Seconds after the exit; a process that the program has left running may never close it."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a program is run."""

    argv: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str] | None
    has_input: bool
    has_own_session: bool
    grace: float
    """Seconds between the request to terminate and the kill."""

    def options(self, stdin: int, stdout: int) -> dict[str, Any]:
        return {
            "stdin": stdin,
            "stdout": stdout,
            "stderr": PIPE,
            "cwd": self.cwd,
            "env": self.env,
            "start_new_session": self.has_own_session,
        }


class _Input:
    """The end of the pipe of stdin that is written. It is closed when everything is written after
    `end`, and when the program has closed it or has ended."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        on_room: Callable[[], object],
        on_lost: Callable[[], object],
    ) -> None:
        self._loop_handle = loop_handle
        self._on_room = on_room
        self._on_lost = on_lost
        self._pipe: int | None = None
        self._unwritten = memoryview(b"")
        self._is_over = False

    def open(self) -> int:
        """Open the pipe; return the end that is read."""
        read, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        # A pipe that nobody reads any more is reported like one that has something to read.
        self._loop_handle.add_reader(self._pipe, self._lose)
        return read

    def write(self, data: bytes) -> None:
        """Write *data*, once `has_room`; what nobody reads any more is dropped."""
        if self._pipe is not None:
            self._unwritten = memoryview(data)
            self._write(self._pipe)
            if self._unwritten:
                self._loop_handle.add_writer(self._pipe, partial(self._write_more, self._pipe))

    def has_room(self) -> bool:
        """Whether the pipe is open, and has taken everything that was written."""
        return self._pipe is not None and not self._unwritten

    def end(self) -> None:
        self._is_over = True
        if not self._unwritten:
            self.close()

    def close(self) -> None:
        """Close the pipe, and drop what is not written."""
        pipe, self._pipe, self._unwritten = self._pipe, None, memoryview(b"")
        if pipe is not None:
            self._loop_handle.remove_reader(pipe)
            self._loop_handle.remove_writer(pipe)
            os.close(pipe)

    def _write(self, pipe: int) -> None:
        """Write as much as the pipe takes now."""
        try:
            written = os.write(pipe, self._unwritten)
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._lose()
        else:
            self._unwritten = self._unwritten[written:]

    def _write_more(self, pipe: int) -> None:
        self._write(pipe)
        if not self.has_room():
            return
        self._loop_handle.remove_writer(pipe)
        if self._is_over:
            self.close()
        else:
            self._on_room()

    def _lose(self) -> None:
        """The program has closed its end, or has ended."""
        self.close()
        self._on_lost()


class ChildProcess:
    """One run of a program. Everything happens on the loop's thread."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        command: Command,
        on_output: Callable[[bytes], object],
        on_input_room: Callable[[], object],
        on_input_lost: Callable[[], object],
    ) -> None:
        self._loop_handle = loop_handle
        self._command = command
        self._on_output = on_output
        self.input: _Input = _Input(loop_handle, on_input_room, on_input_lost)
        self._transport: SubprocessTransport | None = None
        self._kill_timer: TimerHandle | None = None
        self._output: int | None = None
        """The end of the pipe of stdout that is read, while it is open."""
        self._is_reading = False
        self._exited: Future[None] = loop_handle.create_future()
        self._released: Future[None] = loop_handle.create_future()
        self._output_ended: Future[None] = loop_handle.create_future()
        self._stderr_ended: Future[None] = loop_handle.create_future()
        self.stderr: bytearray = bytearray()
        """The last bytes that were written to stderr."""

    # -- its life ---------------------------------------------------------------------------------
    async def start(self) -> None:
        command = self._command
        if os.name == "nt":  # no loop watches its pipes
            raise self._no_processes()
        try:
            with ExitStack() as given:  # the program's ends of the pipes
                self._output, stdout = os.pipe()
                given.callback(os.close, stdout)
                os.set_blocking(self._output, False)
                stdin = DEVNULL
                if command.has_input:
                    stdin = self.input.open()
                    given.callback(os.close, stdin)
                await self._loop_handle.start_process(
                    _Events(self), command.argv, **command.options(stdin, stdout)
                )
        except OSError as error:
            if error.filename is None:  # on uvloop
                where = "" if command.cwd is None else f" with cwd={command.cwd!r}"
                error.filename = command.argv[0] + where
            raise
        except NotImplementedError as error:  # of a loop that starts no processes
            raise self._no_processes() from error

    def _no_processes(self) -> RuntimeError:
        kind = type(self._loop_handle.event_loop).__name__
        return RuntimeError(
            f"from_process: this event loop ({kind}) cannot start processes and watch their pipes; "
            "those of asyncio and uvloop can on Unix"
        )

    async def wait(self) -> int:
        """Wait until stdout has ended and the program has exited; return its status."""
        await shield(self._output_ended)
        await shield(self._exited)
        returncode = cast("int", self._running.get_returncode())
        if returncode and self._kill_timer is None:
            with suppress(TimeoutError):
                async with timeout(_STDERR_ENDS_WITHIN):
                    await shield(self._stderr_ended)
        return returncode

    async def release(self) -> None:
        """Wait until the program has exited, and close its pipes; a cancellation kills it."""
        if self._transport is not None:
            await self._settled(self._exited)
        self.input.close()
        self._close_output()
        if self._transport is not None:
            self._transport.close()
            await self._settled(self._released)

    async def _settled(self, future: Future[None]) -> None:
        while not future.done():
            try:
                await wait_settled(future)
            except CancelledError:
                self.kill()

    # -- stopping ---------------------------------------------------------------------------------
    def stop(self) -> None:
        """Ask the program to terminate, and kill it when it has not done so in time."""
        if self._transport is None:
            return
        self._close_output()  # a process that the program has left running may keep it open
        if not self._exited.done() and self._kill_timer is None:
            self._signal(signal.SIGTERM)
            self._kill_timer = self._loop_handle.call_later(self._command.grace, self.kill)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def __del__(self) -> None:
        # Collected while it runs: its loop was closed, so that nothing could be awaited.
        self.kill()
        self.input.close()
        if self._output is not None:
            os.close(self._output)
            self._output = None

    def _signal(self, number: int) -> None:
        if self._transport is None or self._exited.done():
            return
        # Not by the transport: up to CPython 3.12, that may take the status from its own watcher.
        send = os.killpg if self._command.has_own_session else os.kill
        with suppress(ProcessLookupError):
            send(self._running.get_pid(), number)

    # -- reading and writing ----------------------------------------------------------------------
    def read(self, is_wanted: bool) -> None:
        """Read from stdout, or pause reading."""
        if self._output is None or self._transport is None or is_wanted == self._is_reading:
            return
        self._is_reading = is_wanted
        if is_wanted:
            self._loop_handle.add_reader(self._output, self._read_chunk)
        else:
            self._loop_handle.remove_reader(self._output)

    def _read_chunk(self) -> None:
        if self._output is None or not self._is_reading:
            return  # since this event was found
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._on_output(chunk)
        else:
            self._close_output()

    def _close_output(self) -> None:
        if self._output is not None:
            self.read(False)
            os.close(self._output)
            self._output = None
        if not self._output_ended.done():
            self._output_ended.set_result(None)

    @property
    def _running(self) -> SubprocessTransport:
        assert self._transport is not None
        return self._transport

    # -- events -----------------------------------------------------------------------------------
    def on_started(self, transport: Any) -> None:
        self._transport = transport

    def on_stderr(self, data: bytes) -> None:
        self.stderr += data
        del self.stderr[:-STDERR_TAIL]

    def on_stderr_lost(self) -> None:
        if not self._stderr_ended.done():
            self._stderr_ended.set_result(None)

    def on_exited(self) -> None:
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        if not self._exited.done():
            self._exited.set_result(None)

    def on_released(self) -> None:
        if not self._released.done():
            self._released.set_result(None)


class _Events(SubprocessProtocol):
    """Forwards the events of the transport.

    Weak, so that a process is collected, and killed, after its loop was closed: what waits for its
    exit keeps the transport, and the transport keeps this.
    """

    def __init__(self, process: ChildProcess) -> None:
        self._process = ref(process)

    def connection_made(self, transport: Any) -> None:
        if (process := self._process()) is not None:
            process.on_started(transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if (process := self._process()) is not None:
            process.on_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if (process := self._process()) is not None:
            process.on_stderr_lost()

    def process_exited(self) -> None:
        if (process := self._process()) is not None:
            process.on_exited()

    def connection_lost(self, exc: Exception | None) -> None:
        if (process := self._process()) is not None:
            process.on_released()
