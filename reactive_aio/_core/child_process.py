"""ChildProcess: a program that runs, with its pipes.

Its output is a pipe that is read here, and only by demand. What anyio and asyncio offer for that
reads ahead: their streams fill a buffer, and asyncio's transport reads several times before it can
be paused.
"""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
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

STDIN, STDERR = 0, 2

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

    def options(self, stdout: int) -> dict[str, Any]:
        return {
            "stdin": PIPE if self.has_input else DEVNULL,
            "stdout": stdout,
            "stderr": PIPE,
            "cwd": self.cwd,
            "env": self.env,
            "start_new_session": self.has_own_session,
        }


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
        self._on_input_room = on_input_room
        self._on_input_lost = on_input_lost
        self._transport: SubprocessTransport | None = None
        self._kill_timer: TimerHandle | None = None
        self._output: int | None = None
        """The end of the pipe of stdout that is read, while it is open."""
        self._is_reading = False
        self._has_input = command.has_input
        self._exited: Future[None] = loop_handle.create_future()
        self._released: Future[None] = loop_handle.create_future()
        self._output_ended: Future[None] = loop_handle.create_future()
        self._stderr_ended: Future[None] = loop_handle.create_future()
        self._has_room = True
        self.stderr: bytearray = bytearray()
        """The last bytes that were written to stderr."""

    # -- its life ---------------------------------------------------------------------------------
    async def start(self) -> None:
        command = self._command
        if os.name == "nt":  # no loop watches its pipes
            raise self._no_processes()
        self._output, given = os.pipe()
        os.set_blocking(self._output, False)
        try:
            await self._loop_handle.start_process(
                _Events(self), command.argv, **command.options(given)
            )
        except OSError as error:
            if error.filename is None:  # on uvloop
                where = "" if command.cwd is None else f" with cwd={command.cwd!r}"
                error.filename = command.argv[0] + where
            raise
        except NotImplementedError as error:  # of a loop that starts no processes
            raise self._no_processes() from error
        finally:
            os.close(given)

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
        if self._transport is None:
            self._close_output()  # it was not started
            return
        await self._settled(self._exited)
        if self._has_input:
            self._pipe(STDIN).abort()  # to close it would wait until what was written is read
        self._close_output()
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

    def write(self, data: bytes) -> None:
        """Write to stdin; the data is dropped if the program has just closed it."""
        pipe = self._pipe(STDIN)
        if not pipe.is_closing():
            pipe.write(data)

    def has_room(self) -> bool:
        """Whether everything that was written has gone into the pipe."""
        return self._has_room

    def end_input(self) -> None:
        self._pipe(STDIN).close()

    @property
    def _running(self) -> SubprocessTransport:
        assert self._transport is not None
        return self._transport

    def _pipe(self, fd: int) -> Any:
        return self._running.get_pipe_transport(fd)

    # -- events -----------------------------------------------------------------------------------
    def on_started(self, transport: Any) -> None:
        self._transport = transport
        if self._has_input:
            self._pipe(STDIN).set_write_buffer_limits(high=0)

    def on_stderr(self, data: bytes) -> None:
        self.stderr += data
        del self.stderr[:-STDERR_TAIL]

    def on_pipe_lost(self, fd: int) -> None:
        if fd == STDIN:
            self._has_input = False
            self._on_input_lost()
        elif not self._stderr_ended.done():
            self._stderr_ended.set_result(None)

    def on_room(self, has_room: bool) -> None:
        self._has_room = has_room
        if has_room:
            self._on_input_room()

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
            process.on_pipe_lost(fd)

    def pause_writing(self) -> None:
        if (process := self._process()) is not None:
            process.on_room(False)

    def resume_writing(self) -> None:
        if (process := self._process()) is not None:
            process.on_room(True)

    def process_exited(self) -> None:
        if (process := self._process()) is not None:
            process.on_exited()

    def connection_lost(self, exc: Exception | None) -> None:
        if (process := self._process()) is not None:
            process.on_released()
