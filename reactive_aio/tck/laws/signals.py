"""Laws about the order of signals, and their end."""

from ..law import law
from ..recorder import UNBOUNDED, AsyncRecorder, Recorder
from ..trial import Trial

__all__ = ()


def _one_more(recorder: Recorder, _element: object) -> None:
    recorder.request(1)


@law("1.3", "publisher", elements=8, completes=True)
async def spec103_does_not_overlap_awaited_signals(trial: Trial) -> None:
    """A signal that is awaited has ended before the next begins, the terminal one included."""
    for first, again in ((UNBOUNDED, False), (2, True)):
        seen = await trial.watch(
            await trial.publisher(8), AsyncRecorder, first, _one_more if again else None
        )
        await seen.end("1.3")
        seen.demand(seen.received == 8, "1.3", f"8 elements exist, {seen.received} came")


@law(
    "1.9",
    "publisher",
    jvm=("required_spec109_mustIssueOnSubscribeForNonNullSubscriber",),
)
async def spec109_subscribes_first(trial: Trial) -> None:
    """on_subscribe is the first signal, comes once, and needs no demand."""
    for n in (0, min(3, trial.subject.max_elements)):
        for kind in trial.kinds:
            seen = await trial.watch(await trial.publisher(n), kind)
            await trial.quiet()
            seen.cancel()
