"""Reports about a flow: its bound, its islands, its trail."""

import asyncio
import re
from typing import Any
from xml.etree import ElementTree

import pytest

import reactive_aio as r
from reactive_aio import Flow, just, merge, range as numbers
from reactive_aio._operators.introspection import Bound
from reactive_aio.testing import SubscriberProbe
from tests.cases import Needs


async def double(number: int) -> int:
    return 2 * number


def test_a_fused_flow_holds_nothing() -> None:
    bound = numbers(9).map(str).filter(bool).bound()
    assert bound == Bound(())
    assert (bound.total, bound.unbounded, str(bound)) == (0, (), "holds no element")


def test_the_bound_is_the_sum_of_the_parts() -> None:
    flow = merge(numbers(3), just(5).boundary(2)).buffer(3).boundary(4)
    bound = flow.bound()
    sizes = [size for _, size in bound.parts]
    assert [name for name, _ in bound.parts] == [
        "boundary(2)",
        "merge(2 sources)",
        "buffer(3)",
        "boundary(4)",
    ]
    assert bound.total == sum(size for size in sizes if size is not None)
    assert str(bound).startswith(f"holds at most {bound.total} elements (boundary(2) 2, ")


def test_unbounded_parts_are_named() -> None:
    bound = numbers(9).distinct(max_keys=None).boundary(4).bound()
    assert bound.total is None
    assert [name.partition("(")[0] for name in bound.unbounded] == ["distinct"]
    assert str(bound).startswith("unbounded: distinct(")


def test_explain_shows_islands_and_the_queues_between_them() -> None:
    flow = numbers(3).map(str).boundary(8).filter(bool)
    assert flow.explain().splitlines() == [
        "island (one loop, pulled): range(0, 3) → map(str)",
        "║ boundary(8), holds at most 8 elements",
        "island (one loop, pushed): filter(bool)",
        "holds at most 8 elements (boundary(8) 8)",
    ]


def test_explain_draws_several_upstreams_side_by_side() -> None:
    lines = merge(numbers(3), just(5).boundary(2)).explain().splitlines()
    assert lines[:3] == [
        "├ island (one loop, pulled): range(0, 3)",
        "├ island (one loop, pulled): just(5)",
        "│ ║ boundary(2), holds at most 2 elements",
    ]


def test_explain_describes_a_flow_that_is_deeper_than_recursion() -> None:
    flow: Flow[Any] = numbers(3)
    for _ in range(2_000):
        flow = flow.boundary(2)
    lines = flow.explain().splitlines()
    assert lines[0] == "island (one loop, pulled): range(0, 3)"
    assert lines.count("║ boundary(2), holds at most 2 elements") == 2_000

    merged: Flow[Any] = just(1)
    for _ in range(1_000):
        merged = merged.merge_with(just(2))
    assert merged.explain().splitlines()[0].startswith("├ " * 1_000)


def test_explain_shows_what_is_pulled_up_to_the_first_flow_that_is_not() -> None:
    mode = "one loop, pulled as long as it flattens iterables, then pushed"
    assert f"island ({mode}): delivery" in numbers(3).flat_map(lambda x: [x]).explain()


def test_explain_shows_where_a_task_is_needed() -> None:
    assert (
        "island (one task): range(0, 3) → map_async(double)"
        in numbers(3).map_async(double).explain()
    )


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        (numbers(3).map(str), "x = mapper_1(x)"),
        (numbers(3).map_async(double), "x = await mapper_1(x)"),
    ],
)
def test_explain_prints_the_loop_that_runs(flow: Flow[Any], text: str) -> None:
    shown = [line.removeprefix("    ") for line in flow.explain(code=True).splitlines()]
    loop = flow.chain.compiled_loop("task" if flow.chain.awaits else "sync", "call").text
    assert text in loop
    assert set(loop.splitlines()) <= set(shown)


def test_explain_has_the_colors_of_a_terminal() -> None:
    flow = merge(numbers(3).map(str), just("5").on_backpressure_buffer(9).distinct(max_keys=None))
    plain, colored = flow.explain(), flow.explain(color=True)
    assert plain == flow.explain(color=False)
    assert re.sub(r"\x1b\[\d+m", "", colored) == plain
    assert "\x1b[1mmap\x1b[0m(str)" in colored
    assert "\x1b[33m║ merge(2 sources), holds at most 512 elements\x1b[0m" in colored
    assert "\x1b[31munbounded: " in colored.splitlines()[-1]
    assert "\x1b[2m    def loop(" in numbers(3).explain(code=True, color=True)


@pytest.mark.parametrize(
    ("is_terminal", "variables", "is_colored"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_explain_is_colored_on_a_terminal(
    is_terminal: bool, variables: dict[str, str], is_colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    assert ("\x1b" in numbers(3).explain()) is is_colored


# -- the graph -------------------------------------------------------------------------------------
def elements_of(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [text.text or "" for text in elements_of(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_graph_is_a_flowchart_of_mermaid() -> None:
    flow = merge(numbers(3).map(str), just('"5"').boundary(2)).filter(bool)
    assert flow.graph().mermaid().splitlines() == [
        "flowchart TD",
        '    n0["range(0, 3)<br/>map(str)"]',
        "    n1[\"just('#34;5#34;')\"]",
        '    n2[["boundary(2)<br/>holds at most 2"]]',
        '    n3[["merge(2 sources)<br/>holds at most 512"]]',
        '    n4["filter(bool)"]',
        "    n1 --> n2",
        "    n3 --> n4",
        "    n0 --> n3",
        "    n2 --> n3",
    ]


def test_a_graph_is_a_picture_that_a_notebook_shows() -> None:
    graph = merge(numbers(3).map(lambda x: f"<{x}>"), just("5").boundary(2)).graph()
    svg = graph.svg()
    assert {"map(<lambda>)", "boundary(2)", "holds at most 2", "delivery"} <= set(words(svg))
    bundle = graph._repr_mimebundle_()
    assert bundle["image/svg+xml"] == svg
    assert svg in bundle["text/html"]
    assert bundle["text/vnd.mermaid"] == graph.mermaid()
    assert bundle["text/plain"] == repr(graph)
    assert list(graph._repr_mimebundle_(include={"text/html"})) == ["text/html"]
    assert "text/html" not in graph._repr_mimebundle_(exclude={"text/html"})
    assert repr(graph).startswith("<Graph of 5 nodes and 4 edges: (range(0, 3) → map(<lambda>) | ")
    assert graph.running is None


def test_a_picture_refers_to_nothing_outside_and_runs_nothing() -> None:
    svg = just("<script>alert(1)</script>", "url(http://x)").boundary(2).graph().svg()
    assert not list(elements_of(svg).iter("{http://www.w3.org/2000/svg}script"))
    assert not re.search(r"(href|src)\s*=", svg)
    styles = "".join(style.text or "" for style in elements_of(svg).iter() if "style" in style.tag)
    assert "url(" not in styles
    assert "@import" not in styles


def test_no_two_nodes_of_a_picture_overlap() -> None:
    parts = [merge(*[just(i).boundary(n) for i in range(n)]).map(str) for n in (1, 2, 5)]
    svg = elements_of(r.zip(*parts).boundary(3).graph().svg())
    boxes = [
        [float(rect.get(name, "")) for name in ("x", "y", "width", "height")]
        for rect in svg.iter("{http://www.w3.org/2000/svg}rect")
        if rect.get("class") in ("i", "b")
    ]
    assert len(boxes) > 20
    for i, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert x + width <= float(svg.get("width", ""))
        assert y + height <= float(svg.get("height", ""))
        for x2, y2, width2, height2 in boxes[:i]:
            apart = x2 >= x + width or x >= x2 + width2 or y2 >= y + height or y >= y2 + height2
            assert apart


def test_a_flow_that_is_combined_with_itself_has_each_node_once() -> None:
    flow = numbers(5)
    for _ in range(30):
        flow = merge(flow, flow)
    graph = flow.graph()
    assert len(graph.model.nodes) == 1 + 30
    assert "n0 -- ×2 --> n1" in graph.mermaid()
    assert "×2" in words(graph.svg())


def test_a_large_graph_is_cut() -> None:
    graph = merge(*[just(i).boundary(2) for i in range(300)]).graph()
    assert len(graph.model.nodes) <= 202
    assert any(re.fullmatch(r"\d+ more", text) for text in words(graph.svg()))
    deep = numbers(9)
    for _ in range(1500):
        deep = deep.boundary(2)
    cut = deep.graph()
    assert len(cut.model.nodes) <= 202
    assert any(re.fullmatch(r"\d+ more", text) for text in words(cut.svg()))
    below = {above for above, _ in cut.model.edges}
    assert {node.key for node in cut.model.nodes} - below == {cut.model.nodes[-1].key}
    many = numbers(9)
    for _ in range(90):
        many = many.map(abs)
    assert "… 79 more" in words(many.graph().svg())


def test_the_unbounded_is_called_so() -> None:
    unbounded = numbers(3).on_backpressure_buffer(5).distinct(max_keys=None)
    assert "holds at most 5" in words(unbounded.graph().svg())


@pytest.mark.virtual_time
async def test_a_graph_of_a_running_flow_has_figures() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(60)
        return n

    flow = numbers(100).boundary(8).map_async(save, concurrency=2).name("saved graph")
    assert flow.graph().running == 0
    async with flow.running(), flow.running():
        await asyncio.sleep(90)
        graph = flow.graph()
    assert graph.running == 2
    source, queue, pool, end = (node.figures for node in graph.model.nodes)
    assert source is not None
    assert queue is not None
    assert pool is not None
    assert end is not None
    assert source.islands == 2
    assert source.delivered == pool.calls + queue.held + end.delivered == 4 + queue.held + 4
    assert 0 < queue.held <= 16
    assert (end.delivered, end.requested) == (4, None)
    text = words(graph.svg())
    assert "2 running · 4 delivered · ∞ requested" in text
    assert f"{queue.held} of 8 held · 4 calls" not in text
    assert any(line.startswith("0 of ") and "4 calls" in line for line in text)
    assert "waits for elements of map_async(save, concurrency=2)" in text
    assert "4 calls" in graph.mermaid()


@pytest.mark.virtual_time
async def test_flows_made_of_elements_are_counted_at_their_operator() -> None:
    flow = numbers(5).flat_map(lambda _: r.interval(1), concurrency=3).name("inner flows")
    async with flow.running():
        await asyncio.sleep(2)
        text = words(flow.graph().svg())
    assert any("3 inner flows" in line for line in text)


async def test_an_error_names_its_flow_once() -> None:
    flow = numbers(3).boundary(2).map(lambda n: 1 // n).boundary(4).map(str)
    probe = SubscriberProbe[str](9).subscribed_to(flow)
    await probe.end()
    assert isinstance(probe.error, ZeroDivisionError)
    [note] = probe.error.__notes__
    assert note.startswith(
        "in the flow: range(0, 3) → boundary(2) → >>map(<lambda>)<< → boundary(4) → map(str)\n"
        f'    with the element 0\n    File "{__file__}", line '
    )


async def test_a_subscriber_that_raises_is_reported_with_the_whole_trail(
    expects_loop_errors: list[dict[str, Any]],
) -> None:
    """Rule 2.13."""

    class Raising(SubscriberProbe[str]):
        def on_next(self, element: str, /) -> None:
            raise KeyError(element)

    numbers(3).map(str).boundary(2).filter(bool).subscribe(Raising(1))
    while not expects_loop_errors:  # noqa: ASYNC110 - one turn at a time
        await asyncio.sleep(0)
    assert expects_loop_errors[0]["flow"] == "range(0, 3) → map(str) → boundary(2) → filter(bool)"


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Backpressure": {
        "know how many elements a flow can hold, and where": "bound explain graph",
    },
    "Run a service": {
        "see what the flows of a running program do": "stats name",
    },
}


async def example_bound() -> None:
    batches = r.range(100).boundary(32).buffer(10)
    print(batches.bound())


async def example_explain() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(0)
        return n

    print(r.range(100).filter(bool).boundary(32).map_async(save).explain())


async def example_graph() -> None:
    orders = r.range(100).filter(bool).boundary(32).map(str)
    print(orders.graph().mermaid())


async def example_stats() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(0.5)
        return n

    saved = r.range(100).boundary(8).map_async(save).name("orders")
    async with saved.running():
        await asyncio.sleep(1.2)
        [orders] = saved.stats().subscriptions
        print(orders.delivered, "delivered,", orders.held, "held")
        for part in orders.parts:
            print(part.name, "holds", part.held)
