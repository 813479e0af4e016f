"""The lines of a named flow's loop that keep the count of what it has delivered.

Its figures are read while the loop is suspended, and when it has ended: both may be in the middle
of a batch, which is counted when it is complete. A container has grown by what was delivered of the
batch, and an iterator says what is left of it: ``part``, of the length ``whole`` at first. ``over``
is what was counted although the source had ended before.
"""

from .inline import InlineStage

_READS = "for x in taken:"


def is_read(line: str) -> bool:
    """Whether *line* reads the source: when it raises, the loop has no element in its hands."""
    return line.strip() == _READS


def read_measured(skeleton: str) -> str:
    """The template where the source is read by an iterator that can be measured."""
    return skeleton.replace("for x in islice(src, size):", _READS)


def around_batch(word: str, *, fills_container: bool, is_pulled: bool) -> list[str]:
    """The lines for ``MEASURE …`` and ``MEASURED``, before and after a batch."""
    if word == "MEASURED":
        if fills_container:
            return ["over += size - dropped - len(kept) + held", "held = -1"]
        ended = ["over += size - dropped - measure(part, whole, dropped)"]
        return [*(ended * is_pulled), "part = None"]
    if fills_container:
        return ["held = len(kept)"]
    if is_pulled:
        return ["taken, part, whole = measurable(src, size)"]
    batch = word.removeprefix("MEASURE ")
    return [f"{batch} = part = iter({batch})", "whole = size"]


def around_loop(
    lines: list[str], *, measures: bool, fills_container: bool, counter: str
) -> list[str]:
    """*lines*, and what keeps the count at their end."""
    setup, handler, count = list[str](), list[str](), [f"S.emitted = {counter}"]
    if measures and fills_container:
        setup = ["kept, held, over = S.subscriber.container, -1, 0"]
        count = ["if held >= 0: emitted += len(kept) - held", "S.emitted = emitted - over"]
    elif measures:
        setup = ["part, whole, dropped, over = None, 0, 0, 0"]
        handler = [
            "except GeneratorExit:",
            "    raise",
            "except BaseException as error:",
            "    if error.__traceback__.tb_lineno not in READS: dropped += 1",
            "    raise",
        ]
        count = ["S.emitted = emitted - over + measure(part, whole, dropped)"]
    body, end = (["    " + line for line in part] for part in (lines, count))
    return [*setup, "try:", *body, *handler, "finally:", *end]


def counting_label(stages: tuple[InlineStage, ...]) -> int:
    """The position of the last name if what it passes on is not what the loop delivers; else 0."""
    labels = [number for number, stage in enumerate(stages, 1) if stage.label]
    if not labels or not any(stage.drops or stage.emits_many for stage in stages[labels[-1] :]):
        return 0
    return labels[-1]
