"""The laws of Reactive Streams as plain callables, for any publisher: ours and strangers'.

``await check_publisher(make)`` judges the publishers that ``make(n)`` returns, each of exactly n
elements, and reports. Nothing here knows a test framework, or the runtime of this package.
"""

from .publisher import FAILING_LAWS, INFINITE_LAWS, LAWS, Report, check_publisher
from .recorder import Recorder, Terms
from .rules import RULES, Rule, Strength

__all__ = (
    "FAILING_LAWS",
    "INFINITE_LAWS",
    "LAWS",
    "RULES",
    "Recorder",
    "Report",
    "Rule",
    "Strength",
    "Terms",
    "check_publisher",
)
