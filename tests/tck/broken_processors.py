"""For each law for processors at least one processor that breaks it, and the expected verdict.

The documentation is generated from this table.
"""

from functools import partial

from tests.tck.broken_candidate import BrokenCandidate
from tests.tck.flawed_processor import processor_with

__all__ = ("BROKEN_AS_SUBSCRIBERS", "BROKEN_PROCESSORS")


def _row(law: str, rule: str, flaw: str, words: str) -> BrokenCandidate:
    return BrokenCandidate(law, flaw, partial(processor_with, *flaw.split(" and ")), rule, words)


BROKEN_PROCESSORS = [
    _row("spec104_fails_all_its_subscribers", "1.4", "fails only its first subscriber",
         "not passed on"),
    _row("spec104_fails_all_its_subscribers", "1.4", "holds errors back",
         "not passed on to a subscriber without demand"),
    _row("spec201_keeps_earlier_demand", "2.1", "forgets earlier demand", "nothing is requested"),
    _row("spec401_passes_on_what_it_receives", "4.1", "sends another element",
         "what came is another element"),
    _row("spec402_passes_an_error_on_at_once", "4.2", "does not pass errors on", "not passed on"),
    _row("spec402_passes_an_error_on_at_once", "4.2", "replaces errors",
         "ValueError('another') came instead"),
    _row("spec402_requests_nothing_after_an_error", "4.2",
         "does not pass errors on and requests after an error",
         "3 more were requested after on_error"),
]  # fmt: skip
"""At least one row for every law for processors."""

BROKEN_AS_SUBSCRIBERS = [
    _row("setup_probe_and_puppet_work", "2.6", "never cancels its upstream",
         "cancel() has not come"),
    _row("spec206_cancels_on_command", "2.6", "never cancels its upstream",
         "cancel() has not come"),
    _row("spec208_probed_accepts_elements_after_cancel", "2.6", "never cancels its upstream",
         "cancel() has not come"),
    _row("spec210_probed_takes_an_error_at_once", "2.10", "does not pass errors on",
         "has not reached the probe"),
]  # fmt: skip
"""Processors that break a law for white-box subscribers, by which they are judged as well."""
