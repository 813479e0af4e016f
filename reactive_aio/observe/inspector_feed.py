"""What the page of the inspector shows: the state of all named flows, once a second while it is
open."""

import os
import re
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from time import time
from typing import Any, Final

import anyio
import anyio.to_thread

from .._core.foreign_text import printable
from .._core.losses import losses
from .._core.observation.causes import cause_of
from .._core.observation.figures import _subscription_stats as subscription_stats, stalled
from .._core.observation.registry import NamedFlow, Progress, named_flows, named_processors
from .._core.subscription.island import Island
from ..stage import UNBOUNDED, LoopHandle
from .blocked_loop import BlockedLoopWatch
from .doctor import watched
from .drawing.model import GraphModel, graph_of_subscription
from .drawing.svg import svg_of
from .reports import stall_text

__all__ = ("Feed",)

_MOST_FLOWS: Final = 200
_MOST_SUBSCRIPTIONS: Final = 8
"""Of one flow; the others are counted."""
_MOST_REPORTS: Final = 20
_MOST_STOPPED: Final = 8
"""Threads that may still have to notice that their page is closed."""
_FIGURE: Final = re.compile(r"\d[\d.]* s\b")
"""What differs between reports of the same thing."""


class Feed:
    """The source of all pages: it looks only while one of them is open."""

    def __init__(self, every: float, stall: float | None) -> None:
        self._every = every
        self._stall = stall
        self._reports: dict[str, dict[str, Any]] = {}
        self._pages = 0
        self._watcher: BlockedLoopWatch | None = None
        self._stopped: deque[BlockedLoopWatch] = deque(maxlen=_MOST_STOPPED)

    async def states(self, picked: str | None) -> AsyncIterator[dict[str, Any]]:
        """The state now, and then again and again, for one page that shows the flow *picked*."""
        rates = _Rates()
        with self._looking():
            while True:
                yield self._state(picked, rates)
                await anyio.sleep(self._every)

    async def aclose(self) -> None:
        """Wait until the threads have ended that looked for pages which are closed now."""
        with anyio.CancelScope(shield=True):
            for watcher in self._stopped:
                await anyio.to_thread.run_sync(watcher.join)

    @contextmanager
    def _looking(self) -> Generator[None]:
        """Look for calls that block the loop, as long as a page is open."""
        self._pages += 1
        if self._watcher is None:
            handle = LoopHandle("observe.inspector()")
            self._watcher = BlockedLoopWatch(handle, watched()[1], self._add_report)
            self._watcher.start()
        try:
            yield
        finally:
            self._pages -= 1
            if not self._pages:
                self._stop_watcher()

    def _stop_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
            self._stopped.append(self._watcher)
            self._watcher = None

    def _add_report(self, text: str) -> None:
        """Add a report, or count it to those of the same thing; the oldest one is forgotten."""
        key = _FIGURE.sub("", text)
        before = self._reports.pop(key, {"count": 0, "first": time()})
        self._reports[key] = {
            "text": text,
            "count": before["count"] + 1,
            "first": before["first"],
            "at": time(),
        }
        if len(self._reports) > _MOST_REPORTS:
            del self._reports[next(iter(self._reports))]

    @property
    def _threshold(self) -> float:
        return watched()[0] if self._stall is None else self._stall

    def _state(self, picked: str | None, rates: "_Rates") -> dict[str, Any]:
        flows = named_flows()
        lost = losses()
        rates.begin()
        states = [self._flow(flow, rates) for flow in flows[:_MOST_FLOWS]]
        stuck = {each["name"] for each in states if each["stalls"]}
        shown = _picked(flows, picked, stuck)
        return {
            "at": time(),
            "process": {"id": os.getpid(), "name": _program()},
            "every": self._every,
            "stall": self._threshold,
            "flows": states,
            "picked": None if shown is None else shown.name,
            "subscriptions": [] if shown is None else _subscriptions(shown, rates, self._threshold),
            "hidden": max(0, len(flows) - _MOST_FLOWS),
            "processors": [*_processors(rates)],
            "losses": {"elements": dict(lost.elements), "errors": lost.errors},
            "reports": [*self._reports.values()],
        }

    def _flow(self, flow: NamedFlow, rates: "_Rates") -> dict[str, Any]:
        running = flow.subscriptions()
        found = [stats for _, stats in stalled(flow, self._threshold)]
        return {
            "name": flow.name,
            "running": len(running),
            "started": flow.started,
            "completed": flow.completed,
            "failed": flow.failed,
            "cancelled": flow.cancelled,
            "error": printable(flow.last_failure),
            "retries": flow.retries,
            "stalls": [stall_text(flow, stats) for stats in found],
            "causes": [printable(each) for each in Counter(stats.cause for stats in found)],
            "idle": max((stats.idle for stats in found), default=0.0),
            "delivered": flow.delivered + _delivered(running),
            "rate": rates.of(flow.name, _delivered(running)),
        }


class _Rates:
    """The rates of one page: what was delivered since its last look."""

    def __init__(self) -> None:
        self._now = anyio.current_time()
        self._passed = 0.0
        self._before: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def begin(self) -> None:
        """A new look."""
        now = anyio.current_time()
        self._passed, self._now = now - self._now, now
        self._before, self._seen = self._seen, {}

    def of(self, key: str, delivered: int) -> float | None:
        """The elements for each second since the last look; None at the first one."""
        self._seen[key] = delivered
        if key not in self._before or not self._passed:
            return None
        return max(0, delivered - self._before[key]) / self._passed


def _program() -> str:
    """The name of this program, without its arguments: these may be secret."""
    return Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c") else sys.executable).name


def _picked(flows: list[NamedFlow], name: str | None, stuck: set[str]) -> NamedFlow | None:
    """The flow whose graphs are drawn: that of the name, or the first one that stalls, or runs."""
    of_name = (flow for flow in flows if flow.name == name)
    stalling = (flow for flow in flows if flow.name in stuck)
    running = (flow for flow in flows if flow.running)
    return next(chain(of_name, stalling, running, flows), None)


def _subscriptions(flow: NamedFlow, rates: _Rates, threshold: float) -> list[dict[str, Any]]:
    """Those that stall first."""
    stuck = {key for key, _ in stalled(flow, threshold)}
    running = sorted(flow.subscriptions(), key=lambda each: id(each[0]) not in stuck)
    return [
        _subscription(island, progress, rates, is_stuck=id(island) in stuck)
        for island, progress in running[:_MOST_SUBSCRIPTIONS]
    ]


def _delivered(running: list[tuple[Island, Progress]]) -> int:
    return sum(island.delivered for island, _ in running)


def _subscription(
    island: Island, progress: Progress, rates: _Rates, *, is_stuck: bool
) -> dict[str, Any]:
    # A copy, so that the rates of others are measured from their own looks.
    stats = subscription_stats(island, replace(progress))
    key = f"{id(island)}"
    graph = graph_of_subscription(island, cause_of(island) if is_stuck else None)
    return {
        "key": key,
        "rate": rates.of(key, stats.delivered),
        "stuck": printable(stats.cause) if is_stuck else None,
        "trail": stats.trail,
        "delivered": stats.delivered,
        "requested": stats.requested,
        "held": stats.held,
        "idle": stats.idle,
        "waits_for": stats.waits_for,
        "calls": [line for part in stats.parts for line in part.awaited],
        "svg": svg_of(_with_rates(graph, key, rates), stats.trail),
    }


def _with_rates(graph: GraphModel, key: str, rates: _Rates) -> GraphModel:
    for node in graph.nodes:
        if node.figures is not None and node.kind == "island":
            node.figures.rate = rates.of(f"{key} {node.key}", node.figures.delivered)
    return graph


def _processors(rates: _Rates) -> Iterator[dict[str, Any]]:
    for stats in sorted((each.stats() for each in named_processors()), key=lambda each: each.name):
        yield {
            "name": stats.name,
            "subscribers": stats.subscribers,
            "accepted": stats.accepted,
            "rate": rates.of(f"processor {stats.name}", stats.accepted),
            "refused": stats.refused,
            "dropped": sum(stats.dropped.values()),
            "held": stats.held,
            "highest": stats.highest,
            "requested": None if stats.requested >= UNBOUNDED // 2 else stats.requested,
            "done": stats.is_done,
        }
