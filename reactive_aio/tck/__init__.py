"""The conformance kit of Reactive Streams, for anyone's publishers, subscribers and processors.

``check(Subject(publisher=…, subscriber=…, …))`` judges what it is given by every law and reports;
so do ``python -m reactive_aio.tck check package.module:factory`` and ``pytest --rs-tck …``.
Nothing here knows the runtime of this package: strangers are judged as we are.
"""

from .check import Case, cases, check, check_processor, check_publisher, check_subscriber
from .law import Law
from .laws import LAWS
from .rules import RULES, Rule, Strength
from .subject import BadSubject, Subject
from .terms import Terms
from .verdict import Outcome, Report, Verdict
from .whitebox import Probe, Puppet

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
