"""The conformance kit of Reactive Streams, for anyone's publishers, subscribers and processors.

``check(Subject(publisher=…, subscriber=…, …))`` judges what it is given by every law and reports;
so do ``python -m reactive_aio.tck check package.module:factory`` and ``pytest --rs-tck …``.
Nothing here knows the runtime of this package: strangers are judged as we are.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .law import Law
    from .laws import LAWS
    from .report.verdict import Outcome, Report, Verdict
    from .rules import RULES, Rule, Strength
    from .run.checking import Case, cases, check, check_processor, check_publisher, check_subscriber
    from .subject import BadSubject, Subject
    from .terms import Terms
    from .whitebox import Probe, Puppet
else:
    # pytest loads its plugins, and so this package, on every start: the kit waits until it is used.
    from importlib import import_module

    _ROOMS = {
        "run.checking": "Case cases check check_processor check_publisher check_subscriber",
        "law": "Law",
        "laws": "LAWS",
        "rules": "RULES Rule Strength",
        "subject": "BadSubject Subject",
        "terms": "Terms",
        "report.verdict": "Outcome Report Verdict",
        "whitebox": "Probe Puppet",
    }
    _ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

    def __getattr__(name):
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *_ROOM_OF})


__all__ = (
    "LAWS",
    "RULES",
    "BadSubject",
    "Case",
    "Law",
    "Outcome",
    "Probe",
    "Puppet",
    "Report",
    "Rule",
    "Strength",
    "Subject",
    "Terms",
    "Verdict",
    "cases",
    "check",
    "check_processor",
    "check_publisher",
    "check_subscriber",
)
