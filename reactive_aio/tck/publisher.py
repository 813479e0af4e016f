"""All laws for a publisher, and the judgement of one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..errors import RuleViolation
from ..spec import Publisher
from . import _cancellation, _demand, _signals
from .recorder import Terms, terms

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ("FAILING_LAWS", "INFINITE_LAWS", "LAWS", "Law", "Report", "check_publisher")

Law = Callable[[Any], Any]
"""A coroutine function of what makes publishers; it raises `RuleViolation`."""


def _laws(*names: str) -> dict[str, Law]:
    themes: tuple[ModuleType, ...] = (_signals, _demand, _cancellation)
    found = {name: getattr(theme, name) for theme in themes for name in theme.__all__}
    return {name: found[name] for name in names or sorted(found)}


FAILING_LAWS: Final = _laws(
    "spec104_signals_its_failure",
    "spec107_is_silent_after_its_failure",
    "spec213_survives_a_subscriber_that_raises_in_on_error",
)
"""Laws for ``make()``, publishers that fail."""

INFINITE_LAWS: Final = _laws(
    "spec101_infinite_sends_no_more_than_requested",
    "spec108_infinite_is_silent_after_cancel",
    "spec304_leaves_the_loop_to_others",
)
"""Laws for ``make()``, publishers that never end."""

LAWS: Final = {
    name: law for name, law in _laws().items() if name not in FAILING_LAWS | INFINITE_LAWS
}
"""Laws for ``make(n)``, publishers of exactly n elements."""


@dataclass
class Report:
    """What the laws said about one publisher."""

    kept: list[str] = field(default_factory=list[str])
    violations: dict[str, RuleViolation] = field(default_factory=dict[str, RuleViolation])

    @property
    def ok(self) -> bool:
        """Whether every law was kept."""
        return not self.violations

    def __str__(self) -> str:
        lines = [f"{len(self.kept)} laws kept, {len(self.violations)} broken"]
        lines += [f"{law}: {violation}" for law, violation in self.violations.items()]
        return "\n".join(lines)

    def raise_if_broken(self) -> None:
        """Raise the first violation, with all of them in its notes."""
        for violation in self.violations.values():
            violation.add_note(str(self))
            raise violation


async def check_publisher(
    make: Callable[[int], Publisher[Any]] | None = None,
    *,
    failing: Callable[[], Publisher[Any]] | None = None,
    infinite: Callable[[], Publisher[Any]] | None = None,
    under: Terms | None = None,
) -> Report:
    """Judge a publisher by every law, and report.

    ``make(n)`` returns a new publisher of exactly *n* elements, ``failing()`` one that fails, at
    once or after some elements, and ``infinite()`` one that never ends; what is not given is not
    judged.
    """
    report = Report()
    judged: list[tuple[Mapping[str, Law], Callable[..., Any] | None]] = [
        (LAWS, make),
        (FAILING_LAWS, failing),
        (INFINITE_LAWS, infinite),
    ]
    before = terms.set(under or terms.get())
    try:
        for laws, factory in judged:
            if factory is not None:
                await _judge(laws, factory, report)
    finally:
        terms.reset(before)
    return report


async def _judge(laws: Mapping[str, Law], factory: Callable[..., Any], report: Report) -> None:
    for name, law in laws.items():
        try:
            await law(factory)
        except RuleViolation as violation:
            report.violations[name] = violation
        else:
            report.kept.append(name)
