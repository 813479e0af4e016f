"""progress: what is shown, where, and when."""

# Where a Publisher is expected of a lambda, pyright does not infer the types of these calls.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import io
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio._shared.progress_bars import Bars
from reactive_aio.errors import MissingExtra
from reactive_aio.testing import SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "progress": lambda n: r.range(n).progress(n),
    "progress: asynchronous": lambda n: slow(range(n)).progress(),
    "progress: shown": lambda n: r.range(n).progress(n, always=True, console=paper()),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "progress": lambda: slow([1], error=Failed()).progress(2),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "progress": lambda: r.generate(lambda x: (x, x + 1), 0).progress(),
}

IDENTITIES: Identities = {"progress": lambda up: up.progress()}


def paper(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=160, color_system=None)


def on(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture(autouse=True)
def clever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can move its cursor."""
    monkeypatch.setenv("TERM", "xterm")


def each_second(n: int) -> Flow[int]:
    return r.interval(1).take(n)


@pytest.mark.virtual_time
class TestShown:
    async def test_with_a_total_it_has_a_share_a_rate_and_the_time_that_is_left(self) -> None:
        console = paper(terminal=True)
        flow = each_second(100).name("[orders]").progress(100, console=console)
        assert await flow.count() == 100
        assert "[orders]" in on(console)
        assert "25/100  25%  1/s  0:01:1" in on(console)
        assert "left" in on(console)
        assert "100/100  100%  1/s  completed in 0:01:40" in on(console)
        assert on(console).endswith("\x1b[?25h"), "the cursor is shown again"

    async def test_without_a_total_it_has_the_number_and_the_rate(self) -> None:
        console = paper(terminal=True)
        await each_second(5).progress(title="rows", console=console).run()
        assert "rows" in on(console)
        assert "3  0.97/s" in on(console)
        assert "left" not in on(console)
        assert "5  1/s  completed in 0:00:05" in on(console)

    async def test_an_error_and_a_cancellation_end_it(self) -> None:
        endings: dict[str, Flow[int]] = {"failed": r.error(Failed), "cancelled": r.never()}
        for state, ending in endings.items():
            console = paper(terminal=True)
            flow = each_second(2).concat_with(ending).progress(9, console=console)
            run = asyncio.ensure_future(flow.run())
            await asyncio.sleep(4)
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            assert f"2/9  22%  0.5/s  {state} in 0:00:0" in on(console).replace("1/s", "0.5/s")
            assert on(console).endswith("\x1b[?25h")

    async def test_a_cancelled_flow_whose_source_was_never_requested_shows_nothing(self) -> None:
        console = paper(terminal=True)
        probe = SubscriberProbe[int]().subscribed_to(r.never().progress(console=console))
        probe.cancel()
        assert on(console) == ""

    async def test_where_there_is_no_terminal_it_is_quiet_unless_lines_are_asked_for(self) -> None:
        console = paper()
        await each_second(12).progress(12, console=console).run()
        assert on(console) == ""
        await each_second(12).progress(12, console=console, always=True).run()
        lines = on(console).splitlines()
        assert [line.split("  ")[0] for line in lines] == [
            "elements: 5/12",
            "elements: 10/12",
            "elements: 12/12",
        ]
        assert lines[-1].endswith("completed in 0:00:12")
        assert "\x1b" not in on(console)

    async def test_several_flows_share_one_screen(self) -> None:
        console = paper(terminal=True)
        flows = [each_second(n).progress(n, title=f"flow {n}", console=console) for n in (2, 3)]
        assert await r.merge(*flows).count() == 5
        assert "2/2" in on(console)
        assert "3/3" in on(console)

    async def test_it_is_drawn_ten_times_a_second_at_most_and_not_while_nothing_passes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        drawn: list[str] = []
        console = paper(terminal=True)
        flow = r.interval(0.001).take(1000).concat_with(r.never()).progress(console=console)
        monkeypatch.setattr(Bars, "show", lambda *args, **_: drawn.append(args[3]))
        run = asyncio.ensure_future(flow.run())
        await asyncio.sleep(1000)
        assert 9 <= len(drawn) <= 12
        run.cancel()


async def test_a_screen_that_fails_leaves_the_flow_alone(expects_loop_errors: Any) -> None:
    class Broken(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("no space left")

    console = Console(file=Broken(), force_terminal=True)
    assert await r.range(3).progress(console=console).to_list() == [0, 1, 2]
    [context] = expects_loop_errors
    assert "the bar cannot be drawn" in context["message"]


def test_without_rich_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtra, match=r"flow\.progress\(\) .*reactive-aio\[progress\]"):
        r.just(1).progress(console=paper())


def test_mistakes_are_refused() -> None:
    untyped: Any = r.just(1)
    with pytest.raises(TypeError, match="progress: total must be an int"):
        untyped.progress("9")
    with pytest.raises(ValueError, match="progress: total must be at least 0"):
        untyped.progress(-1)
    with pytest.raises(TypeError, match="progress: title must be a str, not 3"):
        untyped.progress(title=3)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {"Run a service": {"see on the terminal how far a flow is": "progress"}}


async def example_progress() -> None:
    orders = r.range(1000).name("orders").progress(total=1000)
    print(await orders.count())
