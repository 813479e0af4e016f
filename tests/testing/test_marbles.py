"""Marble diagrams are read, played and drawn."""

import asyncio

import pytest

from reactive_aio.testing import SubscriberProbe
from reactive_aio.testing.marbles import (
    Demand,
    Diagram,
    Lane,
    Lanes,
    MarbleError,
    Marbles,
    diagrams,
    play,
    show,
)
from reactive_aio.testing.verifier import expect

UNBOUNDED = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "signals"),
    [
        ("", ()),
        ("---", ()),
        ("a--b|", ((0, "a"), (3, "b"), (4, "|"))),
        ("-10-#", ((1, "10"), (3, "#"))),
        ("(ab|)", ((0, "a"), (0, "b"), (0, "|"))),
        ("-(a, b)-c", ((1, "(a,b)"), (3, "c"))),
        ("-[a, b]-|", ((1, "[a,b]"), (3, "|"))),
        ("((1, a)[b,c]|)", ((0, "(1,a)"), (0, "[b,c]"), (0, "|"))),
        ("[(a,b)]|", ((0, "[(a,b)]"), (1, "|"))),
        ("a b -  |", ((0, "a"), (1, "b"), (3, "|"))),
    ],
)
def test_a_lane_is_read(text: str, signals: tuple[tuple[int, str], ...]) -> None:
    assert Lane.parse(text).signals == signals


@pytest.mark.parametrize("text", ["a--b|", "--a-(bc|)", "[a,b]-#", "-", "(ab)---c--", "a 10 b-|"])
def test_a_lane_is_drawn_as_it_was_read(text: str) -> None:
    assert str(Lane.parse(text)) == text


@pytest.mark.parametrize("text", ["a|b", "a#|", "(a", "a.b", "(|a)"])
def test_an_invalid_lane_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"lane|bracket"):
        Lane.parse(text)


def test_a_lane_knows_its_elements_and_its_end() -> None:
    lane = Lane.parse("a-(b#)")
    assert (lane.elements, lane.end) == (((0, "a"), (2, "b")), "#")
    assert Lane.parse("a-").end == ""
    assert show([1, ("a", 2)]) == "[1,(a,2)]", "elements are shown as they are drawn"


DOCUMENTED = """Do something.

    ::

        a--b|
        -1-|
        .zip_with(other)
        (a,1)|

    More text::

        queue = Queue()
        queue.close()

    And an operator without a lane that goes in:

    ::

        just("a")
        a|
    """


def test_diagrams_are_found_among_other_blocks() -> None:
    one, two = diagrams(DOCUMENTED)
    inputs = (Lane.parse("a--b|"), Lane.parse("-1-|"))
    assert one == Diagram(inputs, ".zip_with(other)", Lane.parse("(a,1)|"))
    assert two == Diagram((), 'just("a")', Lane.parse("a|"))
    assert diagrams("Nothing drawn.") == []


@pytest.mark.virtual_time
@pytest.mark.parametrize("text", ["a--b|", "(ab|)", "--#", "a-1-2-(3|)"])
async def test_a_played_lane_is_recorded_as_drawn(text: str) -> None:
    lane = (await play(lambda: Marbles[object](text, tick=2.0), 10, tick=2.0)).signals
    assert lane.signals == Lane.parse(text).signals


@pytest.mark.virtual_time
async def test_a_lane_without_end_is_cancelled() -> None:
    lane = (await play(lambda: Marbles[str]("a--b---"), 5)).signals
    assert str(lane) == "a--b-"


@pytest.mark.virtual_time
async def test_elements_wait_for_demand() -> None:
    probe = SubscriberProbe[object](1).subscribed_to(Marbles[object]("a-1-#"))
    await asyncio.sleep(5)
    assert probe.signals == ["a"]
    probe.request(1)
    assert probe.elements == ["a", 1]
    assert isinstance(probe.error, MarbleError)


@pytest.mark.virtual_time
async def test_a_cancelled_lane_sends_no_signal() -> None:
    probe = SubscriberProbe[object](9).subscribed_to(Marbles[object]("a--b|"))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.sleep(5)
    assert probe.signals == ["a"]


# -- the demand lane -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("", ()),
        ("2---1--x", ((0, 2), (4, 1), (7, None))),
        ("-10-∞", ((1, 10), (3, UNBOUNDED))),
        ("-(3 10 x)-", ((1, 3), (1, 10), (1, None))),
        ("1 2", ((0, 1), (1, 2))),
    ],
)
def test_a_demand_lane_is_read(text: str, requests: tuple[tuple[int, int | None], ...]) -> None:
    lane = Demand.parse(text)
    assert lane.requests == requests
    assert str(lane) == text


@pytest.mark.parametrize("text", ["a", "2-|", "1x", "-(1 y)"])
def test_an_invalid_demand_lane_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a demand lane"):
        Demand.parse(text)


def test_both_lanes_are_read_and_drawn_with_their_ticks_aligned() -> None:
    lanes = Lanes.parse("demand 2---1--x\n  signals a--(bc)-d--")
    assert lanes.demand == Demand.parse("2---1--x")
    assert str(lanes) == "demand   2---   1--x\nsignals  a--(bc)-d--"
    assert Lanes.parse(str(lanes)) == lanes
    assert Lanes.parse("2-\na-") == Lanes(Demand.parse("2-"), Lane.parse("a-"))
    assert Lanes.parse("a|").demand.requests == ((0, UNBOUNDED),), "unbounded, without a lane"
    with pytest.raises(ValueError, match="a demand lane and a signal lane"):
        Lanes.parse("1\n2\n3")


def test_a_diagram_of_a_docstring_can_have_a_demand_lane() -> None:
    [diagram] = diagrams("Do.\n\n::\n\n    demand 1---1\n    ab-|\n    .map(str)\n    a---b|")
    assert diagram.demand == Demand.parse("1---1")
    assert diagram.given == (Lane.parse("ab-|"),)


@pytest.mark.virtual_time
async def test_elements_wait_for_the_demand_lane() -> None:
    lanes = await play(lambda: Marbles[object]("(abc)--d|"), 9, demand="1--2----∞")
    assert str(lanes) == "demand   1--2   ----∞\nsignals  a--(bc)----(d|)"


@pytest.mark.virtual_time
async def test_no_signal_comes_after_the_cancellation() -> None:
    lanes = await play(lambda: Marbles[object]("a-b-c-|"), 9, demand="∞-x")
    assert str(lanes.signals) == "a--------"


@pytest.mark.virtual_time
class TestExpectMarbles:
    async def test_passes_a_flow_like_the_diagram(self) -> None:
        await expect(Marbles[object]("a-b|")).marbles("a-b|")
        await expect(lambda: Marbles[object]("a-b-c-d|")).marbles("1--1--x\na--b---")
        await expect(Marbles[object]("a-b-c-d|", tick=9)).marbles("a-b-", tick=9)

    async def test_shows_the_first_difference(self) -> None:
        with pytest.raises(AssertionError) as caught:
            await expect(Marbles[object]("(ab)-c|")).marbles("demand 1--1--\na-b--|")
        assert str(caught.value).splitlines() == [
            "at tick 2, b was expected and nothing came",
            "demand    1--1--",
            "expected  a-b--|",
            "actual    a--b--",
            "            ^",
        ]

    async def test_omits_unbounded_demand(self) -> None:
        with pytest.raises(AssertionError) as caught:
            await expect(Marbles[object]("a-(10)-#")).marbles("a-10-|")
        assert str(caught.value).splitlines() == [
            "at tick 2, 10 was expected and (10) came",
            "expected  a-10  -|",
            "actual    a-(10)-#",
            "            ^",
        ]

    @pytest.mark.parametrize("lane", ["a--|", "a-", "a-b|", "#", "ab-|", ""])
    async def test_fails_another_lane(self, lane: str) -> None:
        with pytest.raises(AssertionError, match="was expected"):
            await expect(Marbles[object](lane)).marbles("a-|")

    async def test_detects_a_late_end(self) -> None:
        with pytest.raises(AssertionError, match=r"at tick 1, \| was expected and nothing came"):
            await expect(Marbles[object]("a---|")).marbles("a|")

    def test_runs_on_virtual_time_where_no_loop_runs(self) -> None:
        expect(lambda: Marbles[object]("a-b|", tick=3600)).marbles("a-b|", tick=3600).verify()

    async def test_is_the_only_step(self) -> None:
        for steps in (expect(Marbles[str]("a|")).next("a"), expect(Marbles[str]("a|"), request=1)):
            with pytest.raises(ValueError, match="the only step"):
                steps.marbles("a|")
