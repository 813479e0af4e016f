"""AgeMarks never makes an element older than it is, and seldom much younger."""

from collections import deque

from hypothesis import given, strategies as st

from reactive_aio._core.queues.age_marks import AgeMarks

STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=400)


@given(STEPS)
def test_the_oldest_element_is_at_least_as_old_as_it_says(
    steps: list[tuple[int, int, bool]],
) -> None:
    """In each second, some elements arrive, some leave, and then there may be a look."""
    marks, held, looks = AgeMarks(), deque[int](), list[int]()
    arrived = departed = 0
    for now, (more, fewer, is_look) in enumerate(steps):
        held.extend([now] * more)
        arrived += more
        for _ in range(min(fewer, len(held))):
            held.popleft()
            departed += 1
        if not is_look:
            continue
        age = marks.look(departed, arrived, now)
        looks.append(now)
        if not held:
            assert age is None
            continue
        assert age is not None
        assert age <= now - held[0]
        if len(looks) <= 64:  # none was forgotten
            assert now - age == min(at for at in looks if at >= held[0])


def test_what_it_keeps_is_bounded_and_its_error_small() -> None:
    marks = AgeMarks()
    for now in range(2000):
        assert marks.look(0, now + 1, now) == now
    assert len(marks._marks) <= 64
    for now in range(2000, 5000):
        age = marks.look(now - 1000, now + 1, now)
        assert age is not None
        assert 900 < age <= 1000
    assert len(marks._marks) <= 64
