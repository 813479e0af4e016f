"""A report for other programs: JSON, and the JUnit XML that build servers read."""

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from xml.etree import ElementTree

from ..laws import LAWS
from ..rules import LIBRARY_RULES, Strength
from .table import NO_LAW, kit_rules, rule_statuses, unjudged_rules
from .verdict import Outcome, Report, Verdict, explain

__all__ = ("report_as_json", "report_as_junit", "rules_as_json")

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _versions() -> dict[str, str]:
    try:
        kit = version("reactive-aio")
    except PackageNotFoundError:
        kit = "unknown"
    return {"reactive_aio": kit, "python": platform.python_version()}


def report_as_json(report: Report, about: Mapping[str, Any] | None = None) -> str:
    """The status of every rule and every verdict; *about* describes the check."""
    statuses = [
        {**asdict(each), "strength": each.strength.value, "outcome": each.outcome.value}
        for each in rule_statuses(report)
    ]
    unjudged = {rule: reason for reason, rules in unjudged_rules(report).items() for rule in rules}
    data = {
        "candidate": report.candidate,
        "ok": report.ok,
        "versions": _versions(),
        **(about or {}),
        "counts": {each.value: len(report.having(each)) for each in Outcome},
        "rules": statuses,
        "not judged": unjudged,
        "verdicts": [each.to_json() for each in report],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def rules_as_json() -> str:
    """All rules, each with its laws."""
    data = [
        {
            "rule": rule.number,
            "strength": rule.strength.value,
            "text": rule.text,
            "library": rule.number in LIBRARY_RULES,
            "laws": [
                {
                    "name": law.name,
                    "strength": law.strength.value,
                    "text": law.text,
                    "needs": law.needs,
                    "jvm": law.jvm,
                }
                for law in LAWS.values()
                if law.rule == rule.number
            ],
            "not judged": None if any(law.rule == rule.number for law in LAWS.values()) else NO_LAW,
        }
        for rule in kit_rules()
    ]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def report_as_junit(report: Report, *, strict: bool = False) -> str:
    """A test case for each law. A broken SHOULD is reported as skipped, unless *strict*."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_clean(f"rs-tck {report.candidate}"))
    counts = {"failure": 0, "skipped": 0}
    for verdict in report:
        name = f"{verdict.law}-{verdict.strength.name}"
        names = {"classname": _clean(f"{report.candidate}.{verdict.role}"), "name": _clean(name)}
        case = ElementTree.SubElement(suite, "testcase", names, time=f"{verdict.seconds:.3f}")
        kind = _kind(verdict, strict)
        if kind:
            counts[kind] += 1
            element = ElementTree.SubElement(case, kind, message=_clean(verdict.why))
            if verdict.fails:
                element.text = _clean("\n".join(explain(verdict)))
    suite.set("tests", str(len(report.verdicts)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", "0")
    suite.set("skipped", str(counts["skipped"]))
    suite.set("time", f"{sum(each.seconds for each in report):.3f}")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _kind(verdict: Verdict, strict: bool) -> str:
    if verdict.outcome is Outcome.PASS:
        return ""
    is_failure = verdict.strength is Strength.MUST or strict
    return "failure" if verdict.fails and is_failure else "skipped"


def _clean(text: str) -> str:
    """Replace the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
