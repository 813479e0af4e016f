"""What a picture shows of a run: every signal, in its tick, beside the others."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from publishing.reference.diagram_runs import Run, run
from publishing.reference.pictures import LONGEST, picture
from reactive_aio.testing.marbles import Demand, Diagram, Lane

SVG = "{http://www.w3.org/2000/svg}"


def diagram(*lanes: str, demand: str | None = None) -> Diagram:
    *given, code, result = lanes
    inputs = tuple(Lane.parse(each) for each in given)
    return Diagram(inputs, code, Lane.parse(result), Demand.parse(demand) if demand else None)


def shapes(drawn: str, kind: str) -> list[ElementTree.Element]:
    """The shapes of a class."""
    return [each for each in ElementTree.fromstring(drawn).iter() if each.get("class") == kind]


def texts(drawn: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def elements(drawn: str) -> dict[str, list[tuple[float, float]]]:
    """Where the elements of each lane begin and end, by the height of the lane."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in ElementTree.fromstring(drawn).iter(f"{SVG}rect"):
        if each.get("class", "").startswith("c"):
            begin, width = float(each.get("x", "")), float(each.get("width", ""))
            found.setdefault(each.get("y", ""), []).append((begin, begin + width))
    return found


@pytest.mark.virtual_time
async def test_it_shows_the_code_and_every_element() -> None:
    drawn = picture(await run(diagram("a--b|", ".map(str.upper)", "A--B|")))
    assert texts(drawn) == ["a", "b", ".map(str.upper)", "A", "B"]


@pytest.mark.virtual_time
async def test_an_element_is_below_the_one_of_the_same_tick() -> None:
    drawn = picture(await run(diagram("a--b|", ".map(lambda x: [x] * 5)", "a--b|")))
    above, below = ([(begin + end) / 2 for begin, end in lane] for lane in elements(drawn).values())
    assert above == pytest.approx(below)


@pytest.mark.virtual_time
@pytest.mark.parametrize("code", [".concat_map(lambda x: [x] * 3)", ".map(lambda x: [x] * 9)"])
async def test_elements_do_not_overlap(code: str) -> None:
    drawn = picture(await run(diagram("abc|", code, "abc|")))
    for lane in elements(drawn).values():
        assert all(one[1] <= other[0] for one, other in pairwise(lane))


@pytest.mark.virtual_time
async def test_an_error_is_a_cross_and_a_completion_a_bar() -> None:
    drawn = picture(await run(diagram("a--#", ".on_error_complete()", "a--|")))
    assert len(shapes(drawn, "x")) == 1
    assert len(shapes(drawn, "e")) == 1


@pytest.mark.virtual_time
async def test_a_cancelled_source_is_dotted_and_pale_from_there_on() -> None:
    drawn = picture(await run(diagram("a--b--c|", ".take(2)", "a--b|")))
    assert "cancelled" in texts(drawn)
    assert len(shapes(drawn, "o")) == 1
    [pale] = shapes(drawn, "p")
    assert [each.text for each in pale.iter(f"{SVG}text")] == ["c"]


@pytest.mark.virtual_time
async def test_a_source_that_ends_is_not_cancelled() -> None:
    played = await run(diagram("a--|", ".map(str.upper)", "A--|"))
    assert [each.cancelled_at for each in played.inputs] == [None]
    assert "cancelled" not in texts(picture(played))


@pytest.mark.virtual_time
async def test_requests_are_drawn_unless_demand_is_unbounded() -> None:
    limited = diagram("a--b|", ".map(str)", "a--b|", demand="1--2")
    drawn = picture(await run(limited))
    assert [text for text in texts(drawn) if text.isdigit()] == ["1", "2"]
    assert {"source", "result", "demand"} <= {*texts(drawn)}
    assert "demand" not in texts(picture(await run(diagram("a|", ".map(str)", "a|"))))


@pytest.mark.virtual_time
async def test_a_source_without_a_clock_is_requested_as_its_diagram_shows() -> None:
    played = await run(diagram('just("a", "b")', "a--b|"))
    assert played.output.elements == ((0, "a"), (3, "b"))
    assert played.demand is not None
    assert played.demand.requests == ((0, 1), (3, 1))


def test_long_code_is_broken_before_a_method() -> None:
    code = ".map(lambda x: x + 1)" * 5
    lines = [text for text in texts(picture(Run((), code, Lane.parse("a|"), None))) if "x" in text]
    assert "".join(lines) == code
    assert len(lines) > 1
    assert all(line.startswith(".map(") and len(line) <= LONGEST for line in lines)


def test_special_characters_are_escaped() -> None:
    drawn = picture(Run((), 'just("<&>")', Lane(((0, "<&>"),), 1), None))
    assert texts(drawn) == ['just("<&>")', "<&>"]
