"""Marble diagrams are read, played and drawn."""

import asyncio

import pytest

from reactive_aio.testing import SubscriberProbe
from reactive_aio.testing.marbles import Diagram, Drawn, Lane, Marbles, diagrams, play, show


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
    ],
)
def test_a_lane_is_read(text: str, signals: tuple[tuple[int, str], ...]) -> None:
    assert Lane.parse(text).signals == signals


@pytest.mark.parametrize("text", ["a--b|", "--a-(bc|)", "[a,b]-#", "-", "(ab)---c--"])
def test_a_lane_is_drawn_as_it_was_read(text: str) -> None:
    assert str(Lane.parse(text)) == text


@pytest.mark.parametrize("text", ["a|b", "a#|", "(a", "a.b", "(|a)"])
def test_what_is_no_lane_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"lane|bracket"):
        Lane.parse(text)


def test_a_lane_knows_its_elements_and_its_end() -> None:
    lane = Lane.parse("a-(b#)")
    assert lane.elements == ((0, "a"), (2, "b"))
    assert lane.end == "#"
    assert Lane.parse("a-").end == ""


def test_elements_are_shown_as_they_are_drawn() -> None:
    assert show([1, ("a", 2)]) == "[1,(a,2)]"


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
async def test_what_is_played_is_what_is_drawn(text: str) -> None:
    lane = await play(lambda: Marbles[object](text, tick=2.0), 10, tick=2.0)
    assert lane.signals == Lane.parse(text).signals


@pytest.mark.virtual_time
async def test_a_lane_without_end_is_left() -> None:
    lane = await play(lambda: Marbles[str]("a--b---"), 5)
    assert str(lane) == "a--b-"


@pytest.mark.virtual_time
async def test_what_nobody_has_asked_for_waits() -> None:
    probe = SubscriberProbe[object](1).subscribed_to(Marbles[object]("a-1-#"))
    await asyncio.sleep(5)
    assert probe.signals == ["a"]
    probe.request(1)
    assert probe.elements == ["a", 1]
    assert isinstance(probe.error, Drawn)


@pytest.mark.virtual_time
async def test_a_lane_that_is_cancelled_is_silent() -> None:
    probe = SubscriberProbe[object](9).subscribed_to(Marbles[object]("a--b|"))
    await asyncio.sleep(1)
    probe.cancel()
    await asyncio.sleep(5)
    assert probe.signals == ["a"]
