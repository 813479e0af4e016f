"""A drawing of a journal shows the order of all entries, and what was wrong."""

from textwrap import dedent
from typing import Any

import pytest

from reactive_aio.testing.drawing import draw
from reactive_aio.testing.journal import Entry, Journal, Kind

UNBOUNDED = 2**63 - 1


def journal(*entries: Any, name: str = "") -> Journal:
    """A journal of ``Kind`` or ``(Kind, value)``; a float is a pause of so many seconds."""
    now = 0.0
    made = Journal(name, clock=lambda: now)
    for entry in entries:
        if isinstance(entry, float):
            now += entry
        elif isinstance(entry, Kind):
            made.note(entry)
        else:
            made.note(*entry)
    return made


def text(drawn: str) -> str:
    return dedent(drawn).strip("\n")


OPEN = (Kind.SUBSCRIBE, Kind.ON_SUBSCRIBE, (Kind.REQUEST, 2))


def test_both_lanes_have_a_column_for_every_entry() -> None:
    late = "1.8: an element came after cancel()"
    drawn = draw(
        journal(
            *OPEN,
            (Kind.ON_NEXT, "a"),
            (Kind.ON_NEXT, 10),
            (Kind.REQUEST, UNBOUNDED),
            Kind.CANCEL,
            (Kind.ON_NEXT, "d"),
            (Kind.OFFENCE, late),
            Kind.ON_COMPLETE,
            name="just('a', 10)",
        )
    )
    assert drawn == text(
        """
        just('a', 10)
        demand   >---2------∞-x
        signals    >---a-10-----d-|
                                ^-- 1.8: an element came after cancel()
                 (>: subscribed; a number: requested; ∞: unbounded demand; x: cancelled)
        """
    )


def test_a_pause_is_written_out() -> None:
    drawn = draw(
        journal(*OPEN, 0.5, (Kind.ON_NEXT, "a"), 0.001, Kind.ON_COMPLETE, 3.0, Kind.CANCEL)
    )
    assert drawn.splitlines()[:2] == [
        "demand   >---2-~0.5s~-----~3s~-x",
        "signals    >---~0.5s~-a-|",
    ]


def test_an_entry_beyond_the_end_of_a_line_came_too_late() -> None:
    drawn = draw(
        journal(*OPEN, Kind.ON_COMPLETE, (Kind.ON_NEXT, "a"), Kind.CANCEL, (Kind.REQUEST, 1))
    )
    assert drawn.splitlines()[:2] == [
        "demand   >---2-----x 1",
        "signals    >---| a",
    ]


def test_an_error_and_notes_are_footnotes() -> None:
    error = (Kind.ON_ERROR, ValueError("boom"))
    drawn = draw(journal(*OPEN, (Kind.NOTE, "waited"), error))
    assert drawn == text(
        """
        demand   >---2-----
        signals    >---¹-#
              #  ValueError('boom')
              ¹  waited
                 (>: subscribed; a number: requested)
        """
    )


@pytest.mark.parametrize(
    ("element", "word"),
    [
        ("a", "a"),
        ("1", "'1'"),
        ("|", "'|'"),
        ("a-b", "'a-b'"),
        ([1, "x"], "[1,'x']"),
        (None, "None"),
        ("x" * 99, "x" * 15 + "…"),
        ("日本", "日本"),
    ],
)
def test_an_element_cannot_be_confused_with_a_sign(element: object, word: str) -> None:
    signals = draw(journal(*OPEN, (Kind.ON_NEXT, element), Kind.ON_COMPLETE)).splitlines()[1]
    assert signals == f"signals    >---{word}-|"


def test_wide_letters_keep_the_lanes_aligned() -> None:
    demand = draw(journal(*OPEN, (Kind.ON_NEXT, "日本"), Kind.CANCEL)).splitlines()[0]
    assert demand == "demand   >---2------x"


def test_an_element_whose_repr_raises_is_named_by_its_type() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError

    assert "Silent inst" in draw(journal(*OPEN, (Kind.ON_NEXT, Silent())))


class TestOffences:
    def test_words_that_do_not_fit_to_the_right_are_on_the_left(self) -> None:
        lines = draw(
            journal(*OPEN, *20 * [(Kind.ON_NEXT, 1)], (Kind.OFFENCE, "1.1: too many")), width=60
        )
        assert lines.splitlines()[2] == " " * 37 + "1.1: too many --^"

    def test_long_words_are_below(self) -> None:
        drawn = draw(journal(*OPEN, (Kind.OFFENCE, "many words " * 9)), width=40)
        lines = drawn.splitlines()
        assert lines[2] == " " * 13 + "^"
        assert lines[3] == " " * 9 + "many words many words many"
        assert max(map(len, lines[:-1])) <= 40

    def test_all_of_several_are_shown(self) -> None:
        drawn = draw(journal(*OPEN, (Kind.OFFENCE, "one"), (Kind.OFFENCE, "two")))
        assert [line.strip() for line in drawn.splitlines()[2:4]] == ["^-- one", "^-- two"]

    def test_a_journal_without_entries(self) -> None:
        assert (
            draw(journal((Kind.OFFENCE, "1.9: silence"))).splitlines()[-1].strip()
            == "^-- 1.9: silence"
        )


class TestLong:
    def test_the_middle_is_left_out_except_near_an_offence(self) -> None:
        elements: list[tuple[Kind, object]] = [(Kind.ON_NEXT, number) for number in range(300)]
        elements.insert(151, (Kind.OFFENCE, "this one"))
        drawn = draw(journal(*OPEN, *elements))
        assert "-150-" in drawn
        assert "-149-" in drawn
        assert "-100-" not in drawn
        assert drawn.count("…129 more…") == 2
        assert max(map(len, drawn.splitlines())) <= 100

    def test_it_wraps(self) -> None:
        lines = draw(journal(*OPEN, *12 * [(Kind.ON_NEXT, "word")]), width=40).splitlines()
        assert [line[:9] for line in lines[:6]] == [
            "demand   ",
            "signals  ",
            "",
            "demand   ",
            "signals  ",
            "",
        ]
        assert max(map(len, lines[:-1])) <= 40

    def test_unrecorded_entries_are_counted_and_an_offence_points_there(self) -> None:
        drawn = draw(journal(*2010 * [(Kind.ON_NEXT, 1)], (Kind.OFFENCE, "runs away")))
        assert "…  10 more were not recorded" in drawn
        offence = next(line for line in drawn.splitlines() if "runs away" in line)
        signals = drawn.splitlines()[drawn.splitlines().index(offence) - 1]
        assert signals[offence.index("^")] == "…"


def test_an_empty_journal_is_an_empty_text() -> None:
    assert draw(Journal(entries=[])) == ""
    assert draw(Journal(entries=[Entry(0, Kind.NOTE, "x")])).startswith("demand")
