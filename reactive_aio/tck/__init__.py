"""The conformance kit of Reactive Streams for publishers, subscribers and processors.

``check(Candidate(publisher=…, subscriber=…, …))`` judges a candidate by every law that applies and
returns a report; so do ``python -m reactive_aio.tck check package.module:factory`` and
``pytest --rs-tck …``. ``check_operator(operator, does)`` puts an operator of a flow into random
pipelines, and compares it with a statement of what it does. The kit imports nothing of this
package's runtime: objects of any library are judged by the same measure.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .candidate import Candidate, InvalidCandidate, SubscriberPuppet, WhiteboxProbe
    from .law import Law
    from .laws import LAWS
    from .model.operators import check_operator
    from .report.verdict import Outcome, Report, Verdict
    from .rules import RULES, Rule, Strength
    from .run.checking import Case, cases, check, check_processor, check_publisher, check_subscriber
    from .timeouts import Timeouts
else:
    # pytest loads its plugins, and so this package, on every start: import the kit on first use.
    from importlib import import_module

    _EXPORTS = {
        "candidate": "Candidate InvalidCandidate SubscriberPuppet WhiteboxProbe",
        "law": "Law",
        "laws": "LAWS",
        "model.operators": "check_operator",
        "report.verdict": "Outcome Report Verdict",
        "rules": "RULES Rule Strength",
        "run.checking": "Case cases check check_processor check_publisher check_subscriber",
        "timeouts": "Timeouts",
    }
    _MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names.split()}

    def __getattr__(name):
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *_MODULE_OF})


__all__ = (
    "LAWS",
    "RULES",
    "Candidate",
    "Case",
    "InvalidCandidate",
    "Law",
    "Outcome",
    "Report",
    "Rule",
    "Strength",
    "SubscriberPuppet",
    "Timeouts",
    "Verdict",
    "WhiteboxProbe",
    "cases",
    "check",
    "check_operator",
    "check_processor",
    "check_publisher",
    "check_subscriber",
)
