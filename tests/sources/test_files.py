"""from_lines: reading in threads by demand, errors, and files that grow, shrink or are replaced."""

import asyncio
import atexit
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from functools import cache
from io import FileIO
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, from_lines
from reactive_aio._sources import files
from reactive_aio.errors import FrameTooLong
from reactive_aio.spec import Publisher
from reactive_aio.testing import SubscriberProbe
from tests.cases import Needs
from tests.operators.streams import MANY

FOLDER = Path(mkdtemp())
atexit.register(shutil.rmtree, FOLDER)


def write(path: Path, content: bytes, mode: str = "wb") -> Path:
    """Write to a file, from the loop as well: it is small, and in memory."""
    with open(path, mode, buffering=0) as file:
        file.write(content)
    return path


def append(path: Path, content: bytes) -> None:
    write(path, content, "ab")


@cache
def lines_of(n: int) -> Path:
    """A file of *n* lines."""
    return write(FOLDER / f"{n}.txt", b"".join(b"%d\n" % x for x in range(n)))


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "from_lines": lambda n: from_lines(lines_of(n)),
    "from_lines: to be continued": lambda n: from_lines(lines_of(n), follow=True).take(n),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_lines": lambda: from_lines(FOLDER / "missing"),
    "from_lines: after an element": lambda: from_lines(
        write(FOLDER / "bytes", b"a\n\xff\n"), encoding="ascii"
    ),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "from_lines": lambda: from_lines(lines_of(100_000), follow=True),
}
BY_THREADS = {"from_lines", "from_lines: to be continued", "from_lines: after an element"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


class Opened:
    """The files that were opened, and the threads that read them."""

    def __init__(self) -> None:
        self.files: list[FileIO] = []
        self.threads = set[int]()
        self.reads = 0

    def open(self, path: str) -> FileIO:
        opened = self

        class Recorded(FileIO):
            def read(self, size: int | None = -1, /) -> bytes:
                opened.reads += 1
                opened.threads.add(threading.get_ident())
                return super().read(-1 if size is None else size)

        self.files.append(Recorded(path))
        return self.files[-1]

    @property
    def are_closed(self) -> bool:
        return all(file.closed for file in self.files)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = Opened()
    monkeypatch.setattr(files, "_open", opened.open)
    return opened


class TestReading:
    async def test_each_subscription_reads_all_lines(self, path: Path) -> None:
        flow = from_lines(write(path, "a\r\nä\rc\n\nd".encode()))
        for _ in range(2):
            assert await flow.to_list() == ["a", "ä", "c", "", "d"]

    async def test_it_does_not_matter_where_a_chunk_ends(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "CHUNK", 1)
        assert await from_lines(write(path, "ä\r\nb".encode())).to_list() == ["ä", "b"]

    async def test_a_path_is_a_string_or_an_object(self, path: Path) -> None:
        assert await from_lines(str(write(path, b"a"))).to_list() == ["a"]

    async def test_other_encodings_and_errors(self, path: Path) -> None:
        write(path, "ä\n".encode("latin-1"))
        assert await from_lines(path, encoding="latin-1").to_list() == ["ä"]
        assert await from_lines(path, errors="ignore").to_list() == [""]

    async def test_it_reads_on_another_thread_and_closes_the_file(
        self, path: Path, opened: Opened
    ) -> None:
        await from_lines(write(path, b"a\nb")).to_list()
        assert threading.get_ident() not in opened.threads
        assert opened.reads == 2  # the second one finds the end
        assert opened.are_closed

    async def test_it_reads_a_chunk_only_by_demand(self, opened: Opened) -> None:
        probe = SubscriberProbe[str]().subscribed_to(from_lines(lines_of(100_000)))
        await asyncio.sleep(0)
        assert opened.files == []
        probe.request(3)
        await probe.wait_for_signals(3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert opened.reads == 1
        probe.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert opened.are_closed

    async def test_break_closes_the_file(self, opened: Opened) -> None:
        async with from_lines(lines_of(100_000)).stream() as lines:
            async for line in lines:
                if line == "50000":
                    break
        assert len(opened.files) == 1
        assert opened.are_closed

    async def test_a_failure_below_closes_the_file(self, opened: Opened) -> None:
        with pytest.raises(ZeroDivisionError):
            await from_lines(lines_of(5)).map(lambda line: 1 // int(line)).to_list()
        assert opened.are_closed

    def test_it_holds_one_chunk(self, path: Path) -> None:
        assert from_lines(path).bound().total == 1


class TestFailing:
    async def test_a_missing_file_is_named(self, path: Path) -> None:
        with pytest.raises(FileNotFoundError) as raised:
            await from_lines(path).to_list()
        assert str(path) in str(raised.value)
        assert "from_lines(" in raised.value.__notes__[0]

    async def test_a_folder_is_not_a_file(self, path: Path) -> None:
        with pytest.raises(IsADirectoryError):
            await from_lines(path.parent).to_list()

    async def test_what_may_block_without_end_is_refused(self, path: Path) -> None:
        os.mkfifo(path)
        with pytest.raises(ValueError, match="is not a regular file"):
            await from_lines(path).to_list()

    async def test_bytes_that_cannot_be_decoded_are_named_after_the_lines_before(
        self, path: Path
    ) -> None:
        probe = SubscriberProbe[str](9).subscribed_to(from_lines(write(path, b"a\nb\xff\nc")))
        signals = await probe.end()
        assert signals[0] == "a"
        assert isinstance(signals[1], UnicodeDecodeError)
        assert "0xff in position 1" in str(signals[1])
        assert "from_lines: in line 2" in str(signals[1])

    async def test_a_line_that_is_too_long(self, path: Path) -> None:
        with pytest.raises(FrameTooLong, match="from_lines: more than limit=3"):
            await from_lines(write(path, b"abc\nabcd\n"), limit=3).to_list()

    @pytest.mark.parametrize("path", [3, b"a", None, ["a"]])
    def test_a_wrong_path_is_refused_at_once(self, path: Any) -> None:
        with pytest.raises(TypeError, match="from_lines: path must be a str or a path, not"):
            from_lines(path)

    def test_other_wrong_arguments_are_refused_at_once(self, path: Path) -> None:
        with pytest.raises(ValueError, match="from_lines: poll must be more than 0"):
            from_lines(path, follow=True, poll=0)
        with pytest.raises(ValueError, match="from_lines: limit must be at least 1"):
            from_lines(path, limit=0)
        with pytest.raises(ValueError, match="from_lines: in the encoding 'utf-16'"):
            from_lines(path, encoding="utf-16")


def in_thread(call: Callable[..., Any], *args: Any) -> Any:
    return asyncio.to_thread(call, *args)


@pytest.mark.virtual_time
class TestFollowing:
    async def followed(self, path: Path) -> SubscriberProbe[str]:
        """A subscriber that has received what is in the file, between two looks at it."""
        probe = SubscriberProbe[str](MANY).subscribed_to(from_lines(path, follow=True))
        await asyncio.sleep(1.1)
        return probe

    async def test_lines_are_emitted_when_their_end_is_written(self, path: Path) -> None:
        probe = await self.followed(write(path, b"a\nb"))
        assert probe.signals == ["a"]
        append(path, b"c")
        await asyncio.sleep(1)
        assert probe.signals == ["a"]
        append(path, b"\r\nd\n")
        await asyncio.sleep(1)
        assert probe.signals == ["a", "bc", "d"]
        probe.cancel()

    async def test_it_looks_again_after_each_interval(self, path: Path, opened: Opened) -> None:
        flow = from_lines(write(path, b"a\n"), follow=True, poll=10)
        probe = SubscriberProbe[str](MANY).subscribed_to(flow)
        await asyncio.sleep(55)
        assert opened.reads == 2 + 5
        probe.cancel()

    async def test_without_demand_it_does_not_look(self, path: Path, opened: Opened) -> None:
        flow = from_lines(write(path, b"a\n"), follow=True)
        probe = SubscriberProbe[str](1).subscribed_to(flow)
        await asyncio.sleep(1000)
        assert (probe.signals, opened.reads) == (["a"], 1)
        probe.cancel()

    async def test_cancelling_while_it_waits_ends_at_once(self, path: Path, opened: Opened) -> None:
        flow = from_lines(write(path, b"a\n"), follow=True, poll=1000)
        began = asyncio.get_running_loop().time()
        async with flow.stream() as lines:
            async for line in lines:
                assert line == "a"
                break
        with pytest.raises(TimeoutError):
            await flow.timeout(5).to_list()
        assert asyncio.get_running_loop().time() - began == pytest.approx(5)
        assert len(opened.files) == 2
        assert opened.are_closed

    async def test_a_file_that_is_replaced_is_read_to_its_end(self, path: Path) -> None:
        probe = await self.followed(write(path, b"a\n"))
        old = path.with_suffix(".1")
        append(path, b"b\nunfinished")
        await in_thread(path.rename, old)
        write(path, b"c\n")
        await asyncio.sleep(1)
        assert probe.signals == ["a", "b", "unfinished", "c"]
        append(old, b"too late\n")
        append(path, b"d\n")
        await asyncio.sleep(1)
        assert probe.signals[4:] == ["d"]
        probe.cancel()

    async def test_what_is_written_to_the_old_file_while_it_is_replaced_is_read(
        self, path: Path
    ) -> None:
        flow = from_lines(write(path, b"a\n"), follow=True, poll=10)
        probe = SubscriberProbe[str](MANY).subscribed_to(flow)
        await asyncio.sleep(5)
        old = path.with_suffix(".1")
        await in_thread(path.rename, old)
        write(path, b"new\n")
        await asyncio.sleep(10)  # it has seen the new file
        assert probe.signals == ["a"]
        append(old, b"b\n")
        await asyncio.sleep(25)
        assert probe.signals == ["a", "b", "new"]
        probe.cancel()

    async def test_a_file_that_is_replaced_twice_in_one_interval(
        self, path: Path, opened: Opened
    ) -> None:
        probe = await self.followed(write(path, b"a\n"))
        for number in (1, 2):
            await in_thread(path.rename, path.with_suffix(f".{number}"))
            write(path, b"%d\n" % number)
        await asyncio.sleep(1)
        assert probe.signals == ["a", "2"]
        assert [file.closed for file in opened.files] == [True, False]
        probe.cancel()
        await asyncio.sleep(1)
        assert opened.are_closed

    async def test_a_file_that_disappears_is_waited_for(self, path: Path) -> None:
        probe = await self.followed(write(path, b"a\n"))
        await in_thread(path.unlink)
        await asyncio.sleep(100)
        write(path, b"b\n")
        await asyncio.sleep(1)
        assert probe.signals == ["a", "b"]
        probe.cancel()

    async def test_a_file_that_was_truncated_is_read_from_its_start(self, path: Path) -> None:
        probe = await self.followed(write(path, b"first\nsecond\nunfini"))
        write(path, b"")
        await asyncio.sleep(1)
        append(path, b"b\n")
        await asyncio.sleep(1)
        write(path, b"c\n", "r+b")  # as long as before: the change cannot be seen
        await asyncio.sleep(1)
        assert probe.signals == ["first", "second", "unfini", "b"]
        probe.cancel()

    async def test_a_missing_file_is_an_error_at_the_start(self, path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            await from_lines(path, follow=True).to_list()

    async def test_a_folder_that_takes_its_name_fails_the_flow(self, path: Path) -> None:
        probe = await self.followed(write(path, b"a\n"))
        await in_thread(path.unlink)
        await in_thread(path.mkdir)
        signals = await probe.end()
        assert isinstance(signals[1], IsADirectoryError)

    async def test_cancelling_waits_for_a_read_that_is_in_progress(
        self, path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(path, b"a\n")
        is_reading, goes_on = threading.Event(), threading.Event()
        read = files._File.read

        def slow(self: files._File) -> bytes:
            is_reading.set()
            goes_on.wait()
            return read(self)

        monkeypatch.setattr(files._File, "read", slow)
        probe = SubscriberProbe[str](1).subscribed_to(from_lines(path))
        await in_thread(is_reading.wait)
        probe.cancel()
        await asyncio.sleep(1)
        assert opened.files == []
        goes_on.set()
        await asyncio.sleep(1)
        assert len(opened.files) == 1
        assert opened.are_closed
        assert probe.signals == []


async def test_several_files_are_followed_at_the_same_time(tmp_path: Path) -> None:
    flows: list[Flow[str]] = [
        from_lines(write(tmp_path / name, name.encode() + b"\n"), follow=True) for name in "ab"
    ]
    assert sorted(await r.merge(*flows).take(2).to_list()) == ["a", "b"]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from the lines of a file, also while it grows": "from_lines",
    },
}


async def example_from_lines() -> None:
    path = Path(gettempdir(), "orders.txt")
    await asyncio.to_thread(path.write_text, "tea 3\nmilk 1\n")
    print(await r.from_lines(path).map(str.split).to_list())
    await asyncio.to_thread(path.unlink)
