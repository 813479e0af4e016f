"""Tracebacks with the frames of libraries folded, where an operator is written, and signatures."""

import asyncio
import inspect
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from sysconfig import get_path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio._core.compiler import places
from reactive_aio._core.compiler.places import describe_place
from reactive_aio.observe import tracebacks

ROOT = Path(__file__).parents[1]


def fails(x: int) -> int:
    return 1 // (x - x)


async def error_of(flow: Flow[Any]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        await flow.to_list()
    return caught.value


def place_of(flow: Flow[Any]) -> list[str]:
    """The place of the last operator of *flow*, line by line."""
    chain = flow.chain
    place = chain.stages[-1].place if chain.stages else chain.place
    assert place is not None
    return describe_place(place).splitlines()


# -- folding ---------------------------------------------------------------------------------------
async def test_frames_of_libraries_are_folded_and_those_of_the_user_shown() -> None:
    error = await error_of(r.just(1).boundary(2).map(fails))
    before = error.__traceback__
    lines = tracebacks.format_error(error).splitlines()
    assert error.__traceback__ is before
    assert [line for line in lines if "frame" in line and "…" in line] == [
        "  … 6 frames of reactive_aio"
    ]
    assert f'  File "{__file__}", line ' in "\n".join(lines)
    assert "    return 1 // (x - x)" in lines
    assert f"ZeroDivisionError: {error}" in lines
    assert not any("reactive_aio/_core" in line for line in lines)
    assert lines[-2].endswith("r.just(1).boundary(2).map(fails))")


async def test_a_frame_of_the_library_that_raised_is_shown() -> None:
    error = await error_of(r.just(1).map(lambda _: None))
    text = tracebacks.format_error(error)
    assert "  … 4 frames of reactive_aio\n" in text
    assert 'File "<reactive_aio async_generator' in text
    assert 'raise no_element("map")' in text


async def test_causes_contexts_and_groups_are_folded_too() -> None:
    def fails_because(x: int) -> int:
        try:
            return fails(x)
        except ZeroDivisionError as error:
            raise ValueError from error

    cause = await error_of(r.just(1).map(fails_because).boundary(1))
    context = await error_of(r.just(1).map(fails).on_error_resume(r.error(OSError("second"))))
    first = await error_of(r.just(1).map(fails).boundary(1))
    group = BaseExceptionGroup("two", [first, cause])
    for error in (cause, context, group):
        text = tracebacks.format_error(error)
        assert "frames of reactive_aio" in text
        assert "/_core/" not in text


def test_asyncio_and_anyio_are_folded() -> None:
    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, lambda: fails(1))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(main())
    text = tracebacks.format_error(caught.value)
    assert "frames of asyncio\n" in text
    assert "of anyio\n" in text
    assert f"{Path(asyncio.__file__).parent}" not in text


async def test_an_error_without_a_traceback_is_formatted() -> None:
    assert tracebacks.format_error(ValueError("no frames")) == "ValueError: no frames"


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    return monkeypatch


def test_uninstalling_restores_the_hooks(uninstalled: pytest.MonkeyPatch) -> None:
    uninstall = tracebacks.install()
    assert sys.excepthook is not sys.__excepthook__
    uninstall()
    assert (sys.excepthook, threading.excepthook) == (
        sys.__excepthook__,
        threading.__excepthook__,
    )


def test_a_later_hook_stays(uninstalled: pytest.MonkeyPatch) -> None:
    uninstall = tracebacks.install()

    def later(*_: object) -> None: ...

    sys.excepthook = later
    uninstall()
    assert sys.excepthook is later


async def test_hooks_of_others_are_called_too(
    uninstalled: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[object] = []

    def tracker(_: object, error: BaseException, *__: object) -> None:
        called.append(error)

    sys.excepthook = tracker
    threading.excepthook = called.append
    error = await error_of(r.just(1).map(fails))
    arguments: Any = SimpleNamespace(
        exc_type=type(error), exc_value=error, thread=threading.current_thread()
    )
    uninstall = tracebacks.install()
    sys.excepthook(type(error), error, error.__traceback__)
    threading.excepthook(arguments)
    uninstall()
    assert called == [error, arguments]
    shown = capsys.readouterr().err
    assert shown.count("frames of reactive_aio") == 2
    assert "Exception in thread MainThread:" in shown


async def test_logs_can_have_folded_tracebacks() -> None:
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(tracebacks.LogFormatter("%(levelname)s: %(message)s"))
    error = await error_of(r.just(1).map(fails))
    record = logging.LogRecord(
        "log", logging.ERROR, "", 1, "lost", (), (type(error), error, error.__traceback__)
    )
    handler.emit(record)
    handler.emit(logging.LogRecord("log", logging.INFO, "", 1, "fine", (), (None, None, None)))
    lines = written.getvalue().splitlines()
    assert lines[:2] == ["ERROR: lost", "Traceback (most recent call last):"]
    assert "  … 5 frames of reactive_aio" in lines
    assert "INFO: fine" in lines


class Shell:
    """What of IPython's shell is used."""

    def __init__(self) -> None:
        self.handled: tuple[type[BaseException], ...] = ()
        self.handler: Any = None
        self.shown: list[str] = []

    def set_custom_exc(self, kinds: tuple[type[BaseException], ...], handler: Any) -> None:
        self.handled, self.handler = kinds, handler

    def _showtraceback(self, kind: object, error: object, lines: list[str]) -> None:
        self.shown += lines


async def test_cells_of_a_notebook_show_folded_tracebacks(uninstalled: pytest.MonkeyPatch) -> None:
    shell = Shell()
    uninstalled.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    error = await error_of(r.just(1).map(fails))
    uninstall = tracebacks.install()
    assert [*shell.handled] == [Exception]
    shell.handler(shell, type(error), error, error.__traceback__, tb_offset=None)
    assert "  … 5 frames of reactive_aio" in shell.shown
    uninstall()
    assert not shell.handled


@pytest.mark.slow
def test_a_program_shows_uncaught_exceptions_folded(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(
        "import asyncio\n"
        "import reactive_aio as rx\n"
        "from reactive_aio.observe import tracebacks\n"
        "tracebacks.install()\n"
        "asyncio.run(rx.just('x').map(int).run())\n"
    )
    ran = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == 1
    assert "frames of asyncio" in ran.stderr
    assert ran.stderr.endswith(
        "    asyncio.run(rx.just('x').map(int).run())\n" + " " * 33 + "^" * 8 + "\n"
    )


# -- places ----------------------------------------------------------------------------------------
def line_of(text: str) -> int:
    return 1 + next(
        number
        for number, line in enumerate(Path(__file__).read_text().splitlines())
        if text in line
    )


def test_the_call_is_marked_in_a_chain_over_many_lines() -> None:
    flow = (
        r.just(1)
        .map(  # in a chain
            str,
        )
    )  # fmt: skip
    head, line, carets = place_of(flow)
    assert head.startswith(
        f'File "{__file__}", line {line_of(".map(  # in a chain")}, in test_the_'
    )
    assert (line, carets) == ("    .map(  # in a chain", "     " + "^" * 18)


def test_text_that_is_not_ascii_moves_no_mark() -> None:
    _, line, carets = place_of(r.just("äöü→😀").filter(bool))
    assert line[carets.index("^") :] == "filter(bool))"
    assert carets.count("^") == len("filter(bool)")


def test_a_long_line_is_cut_around_the_mark() -> None:
    flow = r.just(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25).map(str).map(repr).map(len)  # fmt: skip # noqa: E501
    _, line, carets = place_of(flow)
    assert line.startswith("    …")
    assert line.endswith("E501")
    assert line[carets.index("^") :].startswith("map(len)")
    long, _ = r.just(1).map(str), "so that the line ends more than a hundred and twenty characters behind the mark, where it is cut as well"  # noqa: E501 # fmt: skip
    _, line, _ = place_of(long)
    assert (len(line), line[-1]) == (124, "…")


def test_an_operator_of_the_user_is_marked_where_it_is_called() -> None:
    def doubled(flow: Flow[int]) -> Flow[int]:
        return flow.via(r.range(1).map(str).chain.stages[0].stage, str)

    flow = doubled(r.just(1))
    assert place_of(flow)[1].strip() == "flow = doubled(r.just(1))"


def test_processors_are_marked_where_they_are_made() -> None:
    made: list[Callable[[], Flow[int]]] = [
        lambda: r.UnicastProcessor[int](),
        lambda: r.MulticastProcessor(3),
        lambda: r.ReplayProcessor[int](3),
        lambda: r.LatestProcessor(3),
    ]
    for make in made:
        assert "Processor" in place_of(make())[1]


def test_code_without_a_file_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    scope: dict[str, Any] = {"r": r}
    exec(compile("\n\nflow = r.just(1).map(str)", "<typed>", "exec"), scope)
    assert place_of(scope["flow"]) == ['File "<typed>", line 3, in <module>']


@pytest.mark.parametrize(("now", "shown"), [("made = 1\n", []), ("made =\\\n 1\n", ["    1"])])
def test_a_file_that_has_changed_has_its_line_at_most(
    now: str, shown: list[str], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(now)
    scope: dict[str, Any] = {"r": r}
    exec(compile("made = (r.just(1)\n  .map(str))", str(program), "exec"), scope)
    assert place_of(scope["made"]) == [f'File "{program}", line 2, in <module>', *shown]


def test_code_without_columns_has_its_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("made = r.just(1).map(str)\n")
    code = compile(program.read_text(), str(program), "exec")
    # As ``python -X no_debug_ranges`` compiles it: for each eight instructions, the same line.
    same_line = bytes([0x80 | 13 << 3 | 7, 0]) * (len(code.co_code) // 16 + 1)
    for table in (same_line, b""):
        scope: dict[str, Any] = {"r": r}
        exec(code.replace(co_linetable=table), scope)
        assert place_of(scope["made"]) == [
            f'File "{program}", line 1, in <module>',
            "    made = r.just(1).map(str)",
        ]


def test_a_place_in_a_library_is_shown_unless_that_is_the_one_of_python() -> None:
    def is_shown(file: str) -> bool:
        scope: dict[str, Any] = {"r": r}
        exec(compile("made = r.just(1).map(str)", file, "exec"), scope)
        return bool(place_of(scope["made"]))

    standard = get_path("stdlib")
    assert is_shown(f"{standard}/site-packages/shop/flows.py")
    assert is_shown("/opt/shop/flows.py")
    assert not is_shown(f"{standard}/asyncio/shop.py")
    assert not is_shown("<frozen shop>")


def test_so_many_files_are_known_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook that runs for days has one for each cell that was run."""
    monkeypatch.setattr(places, "_MOST_FILES", 3)
    known = places._PassedFiles()
    assert [len(known) for cell in range(5) if not known[f"<cell {cell}>"]] == [1, 2, 3, 1, 2]


async def test_flows_that_the_library_makes_while_it_runs_have_no_place() -> None:
    def generator(x: int) -> Iterator[int]:
        yield fails(x)

    for flow in (r.just(1).flat_map(generator), r.merge(generator(1), r.timer(9))):
        error = await error_of(flow)
        files = [line for line in "".join(error.__notes__).splitlines() if "File" in line]
        assert all(__file__ in line for line in files)


# -- signatures ------------------------------------------------------------------------------------
def signatures() -> Iterator[tuple[str, str]]:
    for name in dir(r):
        yield from _signatures(name, getattr(r, name))
    for name in dir(Flow):
        if not name.startswith("_"):
            yield from _signatures(f"Flow.{name}", getattr(Flow, name))


def _signatures(name: str, value: object) -> Iterator[tuple[str, str]]:
    if callable(value):
        try:
            yield name, str(inspect.signature(value))
        except ValueError:
            return  # a type of the interpreter


def test_signatures_show_names_and_no_addresses() -> None:
    found = dict(signatures())
    assert len(found) > 150
    assert not {name for name, text in found.items() if " at 0x" in text}
    assert found["Flow.first"].endswith("default: Any = <nothing>) -> Any")
    assert "end: object = <no end>" in found["from_queue"]
