"""from_process: output by demand, input, errors, and a program that never outlives its flow."""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, from_process
from reactive_aio._core.child_process import CHUNK, STDERR_TAIL, ChildProcess
from reactive_aio._core.loop import LoopHandle
from reactive_aio.errors import ProcessFailed
from reactive_aio.spec import Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Needs
from tests.harness.leftover_checks import Context
from tests.harness.loops import REAL_LOOPS
from tests.harness.outages import is_gone
from tests.operators.streams import MANY
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_process": lambda n: from_process(["seq", str(n)]).lines(),
    "from_process: with input": lambda n: from_process(["cat"], stdin=r.range(n).map(line)).lines(),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_process": lambda: from_process(["false"]),
    "from_process: after an element": lambda: from_process(shell("echo 1; exit 3")),
    "from_process: by its input": lambda: from_process(["cat"], stdin=r.error(Failed())),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_process": lambda: from_process(["yes"]).lines(),
}
BY_THREADS = {*OF_LENGTH, *FAILING, *INFINITE}
"""A program emits, at any time."""
IN_REAL_TIME = BY_THREADS

WITHIN = 10.0  # seconds, far more than what happens takes


def line(n: int) -> bytes:
    return b"%d\n" % n


LEAVES_A_PROCESS = """
from subprocess import DEVNULL, Popen
print(Popen(["sleep", "1000"], stdout=DEVNULL).pid)
"""


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", script]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN):
        while not condition():  # noqa: ASYNC110 - of a program
            await asyncio.sleep(0.002)


async def turns() -> None:
    """Turns of the loop, in which a forbidden effect would show."""
    for _ in range(50):
        await asyncio.sleep(0)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with suppress(FileNotFoundError), open(f"/proc/{pid}/stat", "rb", buffering=0) as status:
            return b") Z " not in status.read()  # it has ended, and its parent has not looked yet
    except ProcessLookupError:  # also from a file that was opened while it lived
        return False
    return True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ChildProcess]:
    """The programs that were started."""
    found: list[ChildProcess] = []
    start = ChildProcess.start

    async def recorded(self: ChildProcess) -> None:
        found.append(self)
        await start(self)

    monkeypatch.setattr(ChildProcess, "start", recorded)
    return found


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was read from stdout."""
    found: list[bytes] = []
    read = os.read

    def recorded(fd: int, most: int) -> bytes:
        chunk = read(fd, most)
        if most == CHUNK:
            found.append(chunk)
        return chunk

    monkeypatch.setattr(os, "read", recorded)
    return found


def pid_of(process: ChildProcess) -> int:
    return process._running.get_pid()


class TestOutput:
    async def test_much_output_arrives_whole(self) -> None:
        lines = from_process(["seq", "100000"]).lines()
        assert await lines.to_list() == [str(n) for n in range(1, 100_001)]

    async def test_nothing_starts_before_demand(self, started: list[ChildProcess]) -> None:
        probe = SubscriberProbe[bytes]().subscribed_to(from_process(["yes"]))
        await turns()
        assert started == []
        probe.cancel()
        await turns()
        assert started == []

    async def test_a_chunk_is_read_only_by_demand(
        self, chunks: list[bytes], started: list[ChildProcess]
    ) -> None:
        async with from_process(["yes"]).stream() as output:
            elements = aiter(output)
            for expected in range(1, 4):
                assert await anext(elements)
                await turns()
                assert len(chunks) <= expected + 1  # `async for` requests one more

        chunks.clear()
        probe = SubscriberProbe[bytes](1).subscribed_to(from_process(["yes"]))
        await probe.wait_for_signals(1)
        await turns()
        assert len(chunks) == 1
        assert len(chunks[0]) <= CHUNK
        probe.request(2)
        await probe.wait_for_signals(3)
        await turns()
        assert len(chunks) == 3
        probe.cancel()
        await until(started[-1]._released.done)

    async def test_environment_and_folder(self, tmp_path: Path) -> None:
        flow = from_process(shell("pwd; echo $NAME"), cwd=tmp_path, env={"NAME": "a"})
        assert await flow.lines().to_list() == [str(tmp_path), "a"]

    async def test_a_program_and_its_arguments_may_be_paths(self, tmp_path: Path) -> None:
        flow = from_process([Path("/bin/echo"), tmp_path])
        assert await flow.lines().to_list() == [str(tmp_path)]

    def test_it_holds_one_chunk(self) -> None:
        assert from_process(["yes"]).bound().total == 1
        assert from_process(["cat"], stdin=b"abc").bound().total == 1
        assert from_process(["cat"], stdin=[b"a", b"b"]).bound().total == 2


class TestInput:
    async def test_without_input_the_program_finds_its_end(self) -> None:
        assert await from_process(["cat"]).to_list() == []

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    async def test_bytes(self, kind: Callable[[bytes], bytes]) -> None:
        flow = from_process(["wc", "-c"], stdin=kind(bytes(5_000_000)))
        assert [int(each) for each in await flow.to_list()] == [5_000_000]

    async def test_no_bytes_are_an_empty_input(self) -> None:
        assert await from_process(["cat"], stdin=b"").to_list() == []

    async def test_any_source_of_bytes(self) -> None:
        async def letters() -> AsyncIterator[bytes]:
            for letter in (b"a", b"b"):
                yield letter

        for source in ([b"a", b"b"], letters(), r.just(b"a", b"b"), r.just(bytearray(b"ab"))):
            given: Any = source
            assert b"".join(await from_process(["cat"], stdin=given).to_list()) == b"ab"

    async def test_the_next_element_is_requested_when_one_is_read(self) -> None:
        def requested(number: int) -> bool:
            return source.requested == number

        source = PublisherProbe[bytes]()
        probe = SubscriberProbe[bytes](MANY).subscribed_to(from_process(["cat"], stdin=source))
        for number in range(1, 4):
            await until(partial(requested, number))
            await turns()
            assert source.requested == number
            source.emit(b"a")
        source.complete()
        await probe.end()
        assert b"".join(probe.elements) == b"aaa"

    async def test_a_program_that_does_not_read_makes_the_source_wait(
        self, started: list[ChildProcess]
    ) -> None:
        source = PublisherProbe[bytes]()
        flow = from_process(["sleep", "1000"], stdin=source)
        probe = SubscriberProbe[bytes](MANY).subscribed_to(flow)
        await until(lambda: source.requested)
        source.emit(bytes(1_000_000))
        await turns()
        assert source.requested == 1
        probe.cancel()
        assert source.cancel_count == 1
        await until(started[0]._released.done)

    async def test_a_program_that_closes_its_input_cancels_the_source(self) -> None:
        source = PublisherProbe[bytes]()
        probe = SubscriberProbe[bytes](MANY).subscribed_to(
            from_process(["head", "-n", "1"], stdin=source)
        )
        await until(lambda: source.requested)
        source.emit(b"a\nb\n")
        assert await probe.end() == [b"a\n", "|"]
        assert source.cancel_count == 1

    # What uvloop starts inherits another descriptor of its input, which stays open until it ends.
    @pytest.mark.asyncio(loop_factories=["asyncio"])
    async def test_a_program_that_closes_its_input_and_goes_on_cancels_the_source(
        self, started: list[ChildProcess]
    ) -> None:
        source = PublisherProbe[bytes]()
        flow = from_process(shell("read line; exec 0<&-; exec sleep 1000"), stdin=source)
        probe = SubscriberProbe[bytes](MANY).subscribed_to(flow)
        await until(lambda: source.requested)
        source.emit(b"a\n")
        await until(lambda: source.cancel_count)
        assert is_running(pid_of(started[0]))
        probe.cancel()
        await until(started[0]._released.done)

    async def test_an_error_of_the_source_ends_the_program(
        self, started: list[ChildProcess]
    ) -> None:
        source = PublisherProbe[bytes]()
        async with from_process(["cat"], stdin=source).stream() as output:
            reading = asyncio.ensure_future(anext(aiter(output)))
            await until(lambda: source.requested)
            source.fail(Failed())
            with pytest.raises(Failed):
                await reading
        assert not is_running(pid_of(started[0]))

    async def test_an_element_of_another_kind_is_named(self) -> None:
        source: Any = [b"a", "b"]
        with pytest.raises(TypeError, match=r"elements of stdin must be bytes, not 'b' \(str\)"):
            await from_process(["cat"], stdin=source).to_list()


class TestFailing:
    async def test_a_status_fails_the_flow_with_the_end_of_stderr(self) -> None:
        script = "echo out; echo first >&2; echo last >&2; exit 3"
        probe = SubscriberProbe[bytes](9).subscribed_to(from_process(shell(script)))
        signals = await probe.end()
        assert signals[0] == b"out\n"
        error = signals[1]
        assert isinstance(error, ProcessFailed)
        assert (error.argv, error.returncode) == (("sh", "-c", script), 3)
        assert error.stderr == b"first\nlast\n"
        assert "'sh' exited with status 3" in str(error)
        assert "last" in str(error)

    async def test_a_signal_is_named(self) -> None:
        with pytest.raises(ProcessFailed, match=r"was ended by signal 9 \(SIGKILL\)") as raised:
            await from_process(shell("kill -9 $$")).to_list()
        assert raised.value.returncode == -9

    async def test_only_the_end_of_stderr_is_kept(self) -> None:
        script = "seq 100000 >&2; exit 1"
        with pytest.raises(ProcessFailed) as raised:
            await from_process(shell(script)).to_list()
        assert len(raised.value.stderr) == STDERR_TAIL
        assert raised.value.stderr.endswith(b"\n100000\n")
        assert len(str(raised.value)) < 3000

    async def test_stderr_does_not_stop_a_program_without_demand(
        self, started: list[ChildProcess]
    ) -> None:
        flow = from_process(shell("yes | head -c 30000; seq 100000 >&2"))
        probe = SubscriberProbe[bytes](1).subscribed_to(flow)
        await probe.wait_for_signals(1)
        await until(lambda: started[0].stderr.endswith(b"100000\n"))
        probe.request(MANY)
        assert (await probe.end())[-1] == "|"

    @pytest.mark.parametrize("status", [0, 3])
    async def test_what_a_process_writes_that_it_has_left_is_waited_for(
        self, status: int, tmp_path: Path
    ) -> None:
        """Its output until the end; what it says about a failure for a moment."""
        gate = tmp_path / "gate"
        writes = f"while ! [ -e '{gate}' ]; do sleep 0.01; done; echo late"
        script = f"echo $$; ({writes}) {'>&2' if status else ''} & exit {status}"
        probe = SubscriberProbe[bytes](9).subscribed_to(from_process(shell(script)))
        [pid] = await probe.wait_for_signals(1)
        await until(lambda: is_gone(int(pid)))
        await turns()
        gate.touch()
        *output, end = await probe.end()
        assert output[1:] == [b"late\n"] * (not status)
        assert end == "|" if not status else end.stderr == b"late\n"

    async def test_success_is_not_delayed_by_a_stderr_that_stays_open(self) -> None:
        async with asyncio.timeout(WITHIN):
            output = await from_process(python(LEAVES_A_PROCESS)).to_list()
        os.kill(int(b"".join(output)), 9)

    async def test_a_program_that_has_exited_may_have_left_its_output_open(self) -> None:
        flow = from_process(shell("sleep 1000 & echo $!"))
        pid = int(await flow.lines().first())
        assert is_running(pid)
        os.kill(pid, 9)

    async def test_a_program_that_is_not_found_is_named(self) -> None:
        with pytest.raises(FileNotFoundError, match="no-such-program") as raised:
            await from_process(["no-such-program", "-v"]).to_list()
        assert "from_process('no-such-program -v')" in raised.value.__notes__[0]

    async def test_a_folder_that_is_not_found_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="missing"):
            await from_process(["echo"], cwd=tmp_path / "missing").to_list()

    @pytest.mark.asyncio(loop_factories=["asyncio"])
    async def test_a_name_that_the_error_has_is_left_as_it_is(self, tmp_path: Path) -> None:
        """On uvloop it has none, and receives one."""
        folder = str(tmp_path / "missing")
        with pytest.raises(FileNotFoundError) as raised:
            await from_process(["echo"], cwd=folder).to_list()
        assert raised.value.filename == folder

    async def test_a_loop_without_processes_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def refuse(*_: object, **options: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(LoopHandle, "start_process", refuse)
        with pytest.raises(RuntimeError, match=r"this event loop .* cannot start processes"):
            await from_process(["echo"]).to_list()


class TestEnding:
    async def test_aclose_waits_until_the_program_has_ended(
        self, started: list[ChildProcess]
    ) -> None:
        async with from_process(["yes"]).stream() as output:
            async for _ in output:
                break
        assert not is_running(pid_of(started[0]))

    async def test_a_failure_below_ends_the_program(self, started: list[ChildProcess]) -> None:
        with pytest.raises(ZeroDivisionError):
            await from_process(["yes"]).map(lambda _: 1 // 0).to_list()
        assert not is_running(pid_of(started[0]))

    async def test_cancelling_while_it_starts(self, started: list[ChildProcess]) -> None:
        probe = SubscriberProbe[bytes](1).subscribed_to(from_process(["sleep", "1000"]))
        await until(lambda: started)
        probe.cancel()
        await until(lambda: started[0]._released.done())
        assert not is_running(pid_of(started[0]))
        assert probe.signals == []

    async def test_a_program_may_clean_up_before_it_ends(
        self, tmp_path: Path, started: list[ChildProcess]
    ) -> None:
        script = f"trap 'echo done > {tmp_path}/log; exit 0' TERM; echo ready; " + (
            "while :; do sleep 0.01; done"
        )
        async with from_process(shell(script)).stream() as output:
            async for _ in output:
                break
        assert await asyncio.to_thread((tmp_path / "log").read_text) == "done\n"
        assert started[0]._running.get_returncode() == 0

    async def test_with_a_session_of_its_own_its_children_end_as_well(self) -> None:
        flow = from_process(shell("sleep 1000 & echo $!; wait"), start_new_session=True)
        child = int(await flow.first())
        await until(lambda: not is_running(child))

    async def test_a_child_that_keeps_the_pipes_does_not_delay_a_cancellation(self) -> None:
        child = int(await from_process(shell("sleep 1000 & echo $!; wait")).first())
        assert is_running(child)
        os.kill(child, 9)

    def test_the_end_of_the_loop_ends_the_program(self, started: list[ChildProcess]) -> None:
        probe = SubscriberProbe[bytes](1)

        async def main() -> None:
            from_process(["sleep", "1000"]).subscribe(probe)
            await until(lambda: started and started[0]._transport)

        asyncio.run(main())
        assert not is_running(pid_of(started[0]))
        assert "Interrupted" in repr(probe.signals)

    # asyncio warns that its transports were not closed, and reports the task.
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("make_loop", REAL_LOOPS.values(), ids=REAL_LOOPS)
    def test_a_loop_that_is_closed_ends_the_program(
        self,
        make_loop: Callable[[], asyncio.AbstractEventLoop],
        expects_loop_errors: list[Context],
        expects_error_logs: list[logging.LogRecord],
    ) -> None:
        async def main() -> int:
            probe = SubscriberProbe[bytes](2)
            from_process(shell("echo $$; exec sleep 1000")).subscribe(probe)
            await probe.wait_for_signals(1)
            return int(probe.elements[0])

        loop = make_loop()
        pid = loop.run_until_complete(main())
        loop.close()
        del loop

        async def other() -> None:
            assert await from_process(["true"]).to_list() == []  # frees the tasks of closed loops
            await until(lambda: gc.collect() >= 0 and not is_running(pid))

        asyncio.run(other())

    def test_a_second_cancellation_kills_the_program(self, started: list[ChildProcess]) -> None:
        script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"

        async def main() -> None:
            probe = SubscriberProbe[bytes](1)
            from_process(shell(script), grace=1000).subscribe(probe)
            await probe.wait_for_signals(1)
            (task,) = [each for each in asyncio.all_tasks() if "process of" in each.get_name()]
            probe.cancel()
            task.cancel()
            await turns()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert started[0]._running.get_returncode() == -9


IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 0.01; done"


def endless() -> Flow[bytes]:
    return r.generate(lambda n: (bytes(100_000), n + 1), 0)


async def fails_soon() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield bytes(100_000)
    raise Failed


PROGRAMS: Mapping[str, tuple[Callable[[], Flow[bytes]], object]] = {
    # a flow, and what it ends with: the number of bytes, or an error
    "reads everything": (lambda: from_process(["cat"], stdin=[bytes(100_000)] * 7), 700_000),
    "reads large chunks": (lambda: from_process(["cat"], stdin=[bytes(3_000_000)] * 2), 6_000_000),
    "reads bytes": (lambda: from_process(["cat"], stdin=bytes(3_000_000)), 3_000_000),
    "reads empty chunks": (lambda: from_process(["cat"], stdin=[b"", b"a", b""]), 1),
    "reads late": (
        lambda: from_process(shell("sleep 0.1; cat"), stdin=[bytes(100_000)] * 3),
        300_000,
    ),
    "reads nothing": (lambda: from_process(["true"], stdin=r.never()), 0),
    "reads nothing of much": (lambda: from_process(["true"], stdin=endless()), 0),
    "reads nothing of bytes": (lambda: from_process(["true"], stdin=bytes(3_000_000)), 0),
    "reads some": (lambda: from_process(["head", "-c", "9"], stdin=endless()), 9),
    "closes its input": (lambda: from_process(shell("exec 0<&-; sleep 0.1"), stdin=endless()), 0),
    "closes its output": (lambda: from_process(shell("exec 1>&-; cat >&2"), stdin=[b"a"] * 9), 0),
    "dies": (lambda: from_process(shell("kill -9 $$"), stdin=endless()), ProcessFailed),
    "fails": (lambda: from_process(shell("cat >&2; exit 3"), stdin=[b"a"]), ProcessFailed),
    "is not there": (lambda: from_process(["/no/such"], stdin=r.never()), FileNotFoundError),
    "has an input that fails": (lambda: from_process(["cat"], stdin=r.error(Failed())), Failed),
    "has an input that fails soon": (lambda: from_process(["cat"], stdin=fails_soon()), Failed),
    "has an input that fails, and ignores the request": (
        lambda: from_process(shell(IGNORES_TERM), stdin=r.error(Failed()), grace=0.05),
        Failed,
    ),
    "leaves a child with its pipes": (
        lambda: from_process(shell("sleep 1 2>&1 </dev/fd/0 & exit 3"), stdin=endless(), grace=0),
        ProcessFailed,
    ),
}
LEFT: Mapping[str, Callable[[], Flow[bytes]]] = {
    "endless output": lambda: from_process(["yes"]),
    "input and output": lambda: from_process(["cat"], stdin=endless()),
    "input that waits": lambda: from_process(shell("echo; sleep 1000"), stdin=endless()),
    "input that is over": lambda: from_process(shell("echo; sleep 1000"), stdin=bytes(1_000_000)),
    "ignores the request": lambda: from_process(shell(IGNORES_TERM), stdin=endless(), grace=0.05),
    "children with its pipes": lambda: from_process(
        shell("sleep 1000 & echo; cat; wait"), stdin=endless(), start_new_session=True
    ),
}


def descriptors_and_children() -> tuple[list[str], list[str]]:
    """Of this process; a child that has ended is one until somebody looks at its status."""
    children: list[str] = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{process}/stat").read_text()
            if int(status.rpartition(")")[2].split()[1]) == os.getpid():
                children.append(process)
    return os.listdir("/proc/self/fd"), children


class TestWhatRemains:
    """No descriptor, no watched descriptor, no process that has ended, on each loop."""

    @staticmethod
    async def remains() -> tuple[list[str], list[str], list[int]]:
        loop: Any = asyncio.get_running_loop()
        selector = getattr(loop, "_selector", None)  # uvloop shows none
        watched = [] if selector is None else sorted(selector.get_map())
        return (*await asyncio.to_thread(descriptors_and_children), watched)

    async def expect_nothing(self, before: object) -> None:
        async with asyncio.timeout(WITHIN):
            # A thread of asyncio's waits for the program.
            while await self.remains() != before:  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    @pytest.mark.parametrize("name", PROGRAMS)
    async def test_of_a_program_that_ends(self, name: str) -> None:
        make, expected = PROGRAMS[name]
        await from_process(["true"]).run()  # opens what the loop keeps
        before = await self.remains()
        for _ in range(2):
            try:
                async with asyncio.timeout(WITHIN):
                    found: object = len(b"".join(await make().to_list()))
            except Exception as error:
                found = type(error)
            assert found == expected
        await self.expect_nothing(before)

    @pytest.mark.parametrize("name", LEFT)
    @pytest.mark.parametrize("how", ["break", "cancel", "task"])
    async def test_of_a_program_that_is_left(self, name: str, how: str) -> None:
        await from_process(["true"]).run()
        before = await self.remains()
        flow = LEFT[name]()
        if how == "break":
            async with asyncio.timeout(WITHIN), flow.stream() as chunks:
                async for _ in chunks:
                    break
        elif how == "cancel":
            probe = SubscriberProbe[bytes](1).subscribed_to(flow)
            await probe.wait_for_signals(1)
            probe.cancel()
        else:
            task = asyncio.ensure_future(flow.run())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await self.expect_nothing(before)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("ls -l", r"argv must be a list, such as \['ls', '-l'\], not the string 'ls -l'"),
        ("ls -l", r"shlex.split\('ls -l'\) makes one"),
        ([], r"argv must be a list of the program and its arguments"),
        ([""], "argv must be a list"),
        (["ls", 3], r"each a str or a path, not \['ls', 3\]"),
        (b"ls", "argv must be a list"),
        (None, "argv must be a list"),
    ],
)
def test_what_is_not_a_list_of_words_is_refused_at_once(argv: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"from_process: .*{words}"):
        from_process(argv)


@pytest.mark.parametrize(
    ("stdin", "words"),
    [("text", "must be bytes, not str; encode it"), (3, r" 3 \(int\) cannot be read as a flow")],
)
def test_what_is_not_a_source_of_bytes_is_refused_at_once(stdin: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"from_process: stdin:?.*{words}"):
        from_process(["cat"], stdin=stdin)


def test_a_negative_grace_is_refused() -> None:
    with pytest.raises(ValueError, match="from_process: grace must be"):
        from_process(["ls"], grace=-1)


@pytest.mark.parametrize("returncode", [-200, -1000])
def test_an_unknown_signal_has_its_number(returncode: int) -> None:
    assert f"signal {-returncode} (unknown)" in str(ProcessFailed(["a"], returncode, b""))


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from what a program writes": "from_process",
    },
}


async def example_from_process() -> None:
    program = r.from_process(["sort", "-n"], stdin=[b"10\n", b"9\n"])
    print(await program.lines().to_list())
