"""then: elements are discarded, ends are not."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio.spec import Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities

OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "then": lambda n: r.range(5).then(r.range(n)),
    "then: over a boundary": lambda n: r.range(5).boundary(2).then(r.range(n).boundary(2)),
    "then: iterable": lambda n: r.range(5).then(range(n)),
}
FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "then: source fails": lambda: r.error(OSError("no")).then(r.range(2)),
    "then: successor fails": lambda: r.range(2).then(r.error(OSError("no"))),
}
INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "then": lambda: r.range(2).then(r.generate(lambda n: (n, n + 1), 0)),
}

IDENTITIES: Identities = {
    "then": lambda up: r.empty().then(up),
}


class TestThen:
    async def test_the_successor_is_subscribed_to_when_the_source_has_completed(self) -> None:
        first, second = PublisherProbe[int](), PublisherProbe[str]()
        flow = r.from_publisher(first).then(second)
        probe = SubscriberProbe[str]().subscribed_to(flow)
        assert first.subscribers == []
        probe.request(2)
        first.emit(1, 2)
        assert (second.subscribers, probe.signals) == ([], [])
        first.complete()
        assert second.requested == 2
        second.emit("a")
        second.complete()
        assert probe.signals == ["a", "|"]

    async def test_a_successor_does_not_follow_a_failure(self) -> None:
        second = PublisherProbe[str]()
        flow = r.range(3).map(lambda x: 1 // x).then(second)
        probe = SubscriberProbe[str](1).subscribed_to(flow)
        assert isinstance(probe.error, ZeroDivisionError)
        assert second.subscribers == []

    @pytest.mark.parametrize("stage", [0, 1])
    async def test_cancel_reaches_the_active_source(self, stage: int) -> None:
        publishers = PublisherProbe[int](), PublisherProbe[int]()
        flow = r.from_publisher(publishers[0]).then(publishers[1])
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        if stage:
            publishers[0].complete()
        probe.cancel()
        assert publishers[stage].cancel_count == 1

    def test_something_that_is_not_a_source_is_refused_at_once(self) -> None:
        with pytest.raises(TypeError, match="then: 5"):
            r.range(3).then(cast("Any", 5))
