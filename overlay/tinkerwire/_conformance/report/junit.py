"""The report as JUnit XML, which CI systems show."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ..outcome import Outcome, Status
from ..requirement import Level
from .failure_text import describe_failure
from .run_report import RunReport

_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain."""


def render_junit(report: RunReport) -> bytes:
    """Return the file.

    A failed must or should is a failure, and a must that was blocked or not run is an error. Other ends but a success
    are skipped tests, also a may that the server does not have.
    """
    root = ElementTree.Element("testsuites", {"name": "tinkerwire conformance"})
    for area in report.areas():
        outcomes = [outcome for outcome in report.outcomes if outcome.requirement.area == area]
        suite = ElementTree.SubElement(root, "testsuite", {"name": area, "timestamp": report.started_at.isoformat()})
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in _properties(report):
            ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
        for outcome in outcomes:
            _add_case(suite, outcome)
        _set_totals(suite, sum(outcome.seconds for outcome in outcomes))
    _set_totals(root, report.seconds)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _properties(report: RunReport) -> list[tuple[str, str]]:
    return [
        ("url", report.url),
        ("wire", report.wire),
        ("wire_evidence", "; ".join(report.wire_evidence)),
        ("model", report.model or ""),
        ("tinkerwire", report.version),
    ]


def _add_case(suite: ElementTree.Element, outcome: Outcome) -> None:
    requirement = outcome.requirement
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {
            "classname": f"tinkerwire.conformance.{requirement.area}",
            "name": _clean(f"{requirement.id} {requirement.sentence}"),
            "time": f"{outcome.seconds:.3f}",
        },
    )
    kind = _kind(outcome)
    if kind == "passed":
        return
    if kind == "skipped":
        prefix = "" if outcome.status is Status.SKIPPED else f"{requirement.level.value}, {outcome.status.value}: "
        message = prefix + (outcome.reason or f"expected {outcome.expected}, got {outcome.received}")
        ElementTree.SubElement(case, "skipped", {"message": _clean(message)})
        return
    message = outcome.reason or f"expected {outcome.expected}, got {outcome.received}"
    element = ElementTree.SubElement(case, kind, {"message": _clean(message), "type": requirement.level.value})
    element.text = _clean(describe_failure(outcome))


def _kind(outcome: Outcome) -> str:
    if outcome.status is Status.PASSED:
        return "passed"
    level = outcome.requirement.level
    if outcome.status is Status.FAILED and level is not Level.MAY:
        return "failure"
    if outcome.status is Status.ERROR:
        return "error"
    return "error" if level is Level.MUST and outcome.status is not Status.SKIPPED else "skipped"


def _set_totals(element: ElementTree.Element, seconds: float) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    element.set("failures", str(len(list(element.iter("failure")))))
    element.set("errors", str(len(list(element.iter("error")))))
    element.set("skipped", str(len(list(element.iter("skipped")))))
    element.set("time", f"{seconds:.3f}")


def _clean(text: str) -> str:
    return _INVALID.sub("?", text)
