"""What a `DeliveryFlow` says of itself, and what is seen of one that runs."""

import asyncio
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.delivery import DeliveryFlow, deliveries


def bury(_: object, error: Exception) -> None:
    """Keep it elsewhere."""


async def enrich(x: int) -> int:
    return x


async def hang(x: int) -> int:
    await asyncio.Event().wait()
    return x


def orders(work: Any = enrich) -> DeliveryFlow[list[int]]:
    flow = deliveries(r.range(100).boundary(4), lambda _: None, limit=50)
    return (
        flow.nack_on_error(3, dead_letter=bury)
        .map(abs)
        .filter(bool)
        .map_async(work, concurrency=3)
        .flat_map(_twice)
        .buffer(10)
    )


def _twice(x: int) -> list[int]:
    return [x, x]


HEAD = "deliveries(limit=50).nack_on_error(attempts=3, dead_letter=bury)"
TRAIL = (
    f"range(0, 100) → boundary(4) → {HEAD} → map(abs) → filter(bool) → "
    "map_async(enrich, concurrency=3) → flat_map(_twice, concurrency=16) → buffer(10)"
)


class TestOneThatDoesNotRun:
    def test_its_text_has_the_operators_as_they_were_written(self) -> None:
        assert repr(orders()) == f"<DeliveryFlow {TRAIL}>"

    def test_it_explains_how_it_runs(self) -> None:
        assert orders().explain(color=False).splitlines() == [
            "island (one loop, pulled): range(0, 100)",
            "║ boundary(4), holds at most 4 elements",
            f"║ {HEAD}, holds at most 50 elements",
            "island (one loop, pushed): map(abs) → filter(bool)",
            "║ map_async(enrich, concurrency=3), holds at most 6 elements",
            "║ flat_map(_twice, concurrency=16), holds at most 528 elements",
            "║ buffer(10), holds at most 20 elements",
            "island (one loop, pushed): as_flow(Delivery)",
            "║ (end of deliveries), holds at most 16 elements",
            "island (one loop, pushed): delivery",
            str(orders().bound()),
        ]

    def test_it_shows_its_loops_and_colors(self) -> None:
        assert "    def loop(" in orders().explain(code=True)
        assert "\x1b[" in orders().explain(color=True)

    def test_its_picture_has_the_operators(self) -> None:
        text = orders().graph().mermaid()
        assert f'[["{HEAD}<br/>holds at most 50"]]' in text
        assert '["map(abs)<br/>filter(bool)"]' in text

    def test_without_a_dead_letter_function_none_is_shown(self) -> None:
        flow = deliveries([1], lambda _: None).nack_on_error(r.RetryPolicy(attempts=None))
        assert "deliveries(limit=256).nack_on_error(attempts=None)>" in repr(flow)


@pytest.mark.virtual_time
class TestOneThatRuns:
    async def test_its_picture_has_the_figures_of_all_operators(self) -> None:
        flow = orders(hang).ack_after(print, concurrency=2).name("orders")
        async with flow.running():
            await asyncio.sleep(1)
            [subscription] = flow.stats().subscriptions
            nodes = flow.graph().model.nodes
        assert [node.label for node in nodes if node.figures is None] == []
        [pool] = [node for node in nodes if node.label.startswith("map_async(hang")]
        assert pool.figures is not None
        assert pool.figures.calls == 3
        assert not any(part.is_made for part in subscription.parts)

    async def test_two_subscriptions_count_together(self) -> None:
        flow = orders(hang).ack_after(print).name("orders")
        async with flow.running(), flow.running():
            await asyncio.sleep(1)
            graph = flow.graph()
        [pool] = [node for node in graph.model.nodes if node.label.startswith("map_async(hang")]
        assert pool.figures is not None
        assert (graph.running, pool.figures.calls) == (2, 6)

    async def test_flows_of_the_same_operators_do_not_mix(self) -> None:
        base = orders(hang)
        flow, another = base.ack_after(print).name("orders"), base.as_flow().name("orders")
        async with flow.running(), another.running():
            await asyncio.sleep(1)
            assert (flow.graph().running, another.graph().running) == (1, 1)

    async def test_its_last_error_marks_the_operator(self) -> None:
        def fails(x: int) -> int:
            raise ValueError(x)

        flow: Flow[int] = deliveries([7], lambda _: None).map(fails).ack_after(print).name("fails")
        with pytest.raises(ValueError, match="7"):
            await flow.run()
        trail, element = flow.stats().last_error.splitlines()[1:3]
        assert "→ deliveries(limit=256) → >>map(" in trail
        assert element == "    with the element 7"

    @pytest.mark.parametrize("concurrency", [1, 2])
    async def test_an_error_after_which_it_is_tried_again_marks_the_operator(
        self, concurrency: int
    ) -> None:
        async def fails(x: int) -> int:
            raise ValueError(x)

        buried: list[Exception] = []
        held = deliveries([7], lambda _: None)
        held = held.nack_on_error(2, dead_letter=lambda _, error: buried.append(error))
        made = held.map_async(fails, concurrency=concurrency)
        flow = made.ack_after(print).name("fails again")
        await flow.run()
        trail, element, file = flow.stats().last_error.splitlines()[1:4]
        assert ".nack_on_error(attempts=2, dead_letter=<lambda>) → >>map_async(" in trail
        assert element == "    with the element 7"
        assert "test_reports.py" in file
        [error] = buried
        assert any(">>map_async(" in note for note in error.__notes__)
