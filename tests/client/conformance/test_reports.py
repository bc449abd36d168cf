"""Tests of the forms of the report, from outcomes that are made here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import attrs
import jsonschema
import pytest

from tinkerwire._conformance.exchange import Exchange, find_submission
from tinkerwire._conformance.outcome import Outcome, Status
from tinkerwire._conformance.prediction import BrokenFeature, Prediction, Verdict
from tinkerwire._conformance.report.badge import render_badge
from tinkerwire._conformance.report.baseline import Baseline, Change, compare, read_baseline
from tinkerwire._conformance.report.html_report import render_html
from tinkerwire._conformance.report.json_report import render_json
from tinkerwire._conformance.report.junit import render_junit
from tinkerwire._conformance.report.redaction import ReportRedaction
from tinkerwire._conformance.report.run_report import RunReport, join_ids
from tinkerwire._conformance.requirement import Area, Breakage, Feature, Level, Requirement
from tinkerwire._conformance.subject.server import Server
from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse

SCHEMA = json.loads((files("tinkerwire._conformance.report") / "report.schema.json").read_text())
KEY = "Zx81QjZx81Qj"
TOKEN = "eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl"
NASTY = "<script>alert(1)</script> & \x00\x1b[31m\ud800"


def make_requirement(number: int, level: Level = Level.MUST, area: str = "futures") -> Requirement:
    """Return a requirement that breaks a client."""
    made = Area("FUT", area, area)

    @made.requirement(
        level,
        number,
        contract="forward_backward 200",
        remedy="Return a <b>promise</b>.",
        breaks=[Breakage("0.3.0", "0.9.0", Feature.TRAIN, "raises on every step")],
    )
    async def test(server: Server) -> None:
        """The server keeps its <promises> & more."""

    return made.requirements[0]


def make_exchange(key: str = KEY) -> Exchange:
    """Return an exchange in which the server repeats the key."""
    request = WireRequest(
        method="POST",
        path="/api/v1/forward",
        headers={"x-api-key": key, "authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
        content=json.dumps({"text": "it's", "key": key}).encode(),
    )
    response = WireResponse(
        status=401,
        headers={"content-type": "application/json", "set-cookie": key, "x-request-id": "r-1"},
        content=json.dumps({"detail": f"{key} is not {TOKEN}"}).encode(),
    )
    return Exchange(request, f"http://127.0.0.1:1/api/v1/forward?key={key}", response, "", 0.5)


def make_report(*outcomes: Outcome, predictions: Sequence[Prediction] | None = None) -> RunReport:
    """Return a report of some outcomes."""
    return RunReport(
        url="http://127.0.0.1:1",
        wire="0.25.0",
        wire_evidence=("set by the user",),
        model="tinkerwire/byte-nano",
        started_at=datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc),
        seconds=4.5,
        version="0.1.0",
        outcomes=outcomes,
        predictions=None if predictions is None else tuple(predictions),
    )


def make_outcomes(*statuses: Status, level: Level = Level.MUST) -> list[Outcome]:
    """Return an outcome for each status."""
    return [
        Outcome(
            requirement=make_requirement(number, level),
            status=status,
            seconds=0.25,
            expected="a promise",
            received=NASTY,
            reason="" if status is Status.FAILED else f"reason {number}",
            exchange=make_exchange() if status is Status.FAILED else None,
        )
        for number, status in enumerate(statuses, 1)
    ]


PREDICTIONS = (
    Prediction("official SDK 0.3.0", Verdict.WORKS),
    Prediction(
        "cookbook <0.5>",
        Verdict.IN_PART,
        (
            BrokenFeature(Feature.TRAIN, "no forward", is_seen=True),
            BrokenFeature(Feature.SAMPLE, "waits", is_seen=False),
        ),
        ("FUT-001", "FUT-001"),
        "0.38.0",
    ),
    Prediction("tinkerwire", Verdict.UNKNOWN),
)
ALL = make_outcomes(*Status)


@pytest.mark.parametrize(
    ("statuses", "level", "holds"),
    [
        ([Status.PASSED], Level.MUST, True),
        ([Status.PASSED, Status.SKIPPED], Level.MUST, True),
        ([Status.PASSED, Status.FAILED], Level.MUST, False),
        ([Status.PASSED, Status.BLOCKED], Level.MUST, False),
        ([Status.PASSED, Status.NOT_RUN], Level.MUST, False),
        ([Status.PASSED, Status.ERROR], Level.MUST, False),
        ([Status.PASSED, Status.FAILED], Level.SHOULD, True),
        ([Status.SKIPPED], Level.MUST, False),
        ([], Level.MUST, False),
    ],
)
def test_verdict_depends_on_the_musts(statuses: list[Status], level: Level, holds: bool) -> None:
    """A must of which nothing is known does not hold, and a run that tested nothing proves nothing."""
    report = make_report(*make_outcomes(*statuses, level=level))
    assert report.holds == holds
    assert report.describe_verdict().startswith("wire 0.25.0: ")


@pytest.mark.parametrize("predictions", [None, PREDICTIONS])
def test_json_fits_its_schema(predictions: Sequence[Prediction] | None) -> None:
    report = make_report(*ALL, predictions=predictions)
    comparison = compare(report, Baseline("old.json", {"FUT-001": "failed", "FUT-099": "passed"}), ["FUT-001"])
    value = json.loads(render_json(report, comparison).encode("utf-8", "surrogatepass"))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(value, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert [item["status"] for item in value["requirements"]] == [status.value for status in Status]
    assert value["comparison"]["gone"] == ["FUT-099"]


def test_binary_bodies_are_complete_in_json() -> None:
    """A body that is not text is there in base64."""
    request = WireRequest(method="POST", path="/", headers={"content-type": PROTOBUF}, content=b"\x08\x01\xff")
    exchange = Exchange(request, "http://127.0.0.1:1/", None, "no response within 1 s", 1.0)
    (outcome,) = make_outcomes(Status.FAILED)
    value = json.loads(render_json(make_report(attrs.evolve(outcome, exchange=exchange, received="none"))))
    jsonschema.validate(value, SCHEMA)
    (requirement,) = value["requirements"]
    assert requirement["exchange"]["request"]["body_base64"] == "CAH/"
    assert requirement["exchange"]["response"] is None


def test_junit_counts_what_ci_has_to_show() -> None:
    """A failed must is a failure, an unknown one an error; an optional one that is absent is skipped."""
    outcomes = [
        *ALL,
        *make_outcomes(Status.FAILED, level=Level.MAY),
        *make_outcomes(Status.BLOCKED, level=Level.SHOULD),
    ]
    root = ElementTree.fromstring(render_junit(make_report(*outcomes)))
    (suite,) = root.iter("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "8",
        "failures": "1",
        "errors": "3",
        "skipped": "3",
    }
    (failure,) = suite.iter("failure")
    assert "Return a <b>promise</b>." in (failure.text or "")
    assert "official SDK 0.3.0 to 0.9.0 (train): raises on every step" in (failure.text or "")


class Page(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that elements are nested."""
        assert self.open.pop() == tag


def test_page_is_complete_without_network_and_script() -> None:
    """Elements are nested, texts are escaped, failures are open, and nothing is loaded."""
    text = render_html(make_report(*ALL, predictions=PREDICTIONS))
    page = Page(text)
    assert page.open == []
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert not [values for _, values in page.elements if {"src", "srcset"} & set(values)]
    assert not re.search(r"url\(|@import|<link", text)
    items = [values for tag, values in page.elements if tag == "details" and "data-outcome" in values]
    assert [values["data-outcome"] for values in items if "open" in values] == ["failed", "error"]
    assert len(items) == len(ALL)
    ids = [values["id"] for _, values in page.elements if "id" in values]
    links = [str(values["href"]) for tag, values in page.elements if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert text.index("Which clients will work") < text.index("<h2>Areas")
    assert 'id="filter" role="search" hidden' in text


@pytest.mark.parametrize(
    ("outcomes", "value", "color"),
    [
        (make_outcomes(Status.PASSED, Status.SKIPPED), "1/1", "#2e7d32"),
        ([*make_outcomes(Status.PASSED), *make_outcomes(Status.FAILED, level=Level.SHOULD)], "1/2", "#8a6100"),
        (make_outcomes(Status.PASSED, Status.FAILED), "1/2", "#b3261e"),
    ],
)
def test_badge_shows_what_holds(outcomes: list[Outcome], value: str, color: str) -> None:
    text = render_badge(make_report(*outcomes))
    root = ElementTree.fromstring(text)
    assert [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")] == ["tinker wire 0.25.0", value]
    assert color in text


def test_comparison_ranks_outcomes() -> None:
    """Requirements that were not run in one of both reports have no change."""
    report = make_report(*make_outcomes(Status.PASSED, Status.FAILED, Status.SKIPPED, Status.NOT_RUN, Status.PASSED))
    old = {"FUT-001": "blocked", "FUT-002": "passed", "FUT-003": "passed", "FUT-004": "passed", "FUT-008": "passed"}
    comparison = compare(report, Baseline("old.json", {**old, "FUT-009": "passed"}), list(old))
    assert comparison.better == (Change("FUT-001", "blocked", "passed"),)
    assert comparison.worse == (Change("FUT-002", "passed", "failed"), Change("FUT-003", "passed", "skipped"))
    assert (comparison.new, comparison.gone) == (("FUT-005",), ("FUT-009",))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"requirements": [1]}', '{"requirements": [{"id": 1, "status": 2}]}']
)
def test_other_files_are_rejected_as_baseline(text: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"old\.json is not a report"):
        read_baseline(path)


def test_own_report_is_a_baseline(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(render_json(make_report(*make_outcomes(Status.PASSED, Status.BLOCKED))))
    assert read_baseline(path).statuses == {"FUT-001": "passed", "FUT-002": "blocked"}


def test_no_form_has_a_key() -> None:
    """Known keys, tokens and secret headers are removed from requests, responses and texts."""
    exchange = make_exchange()
    (outcome,) = make_outcomes(Status.FAILED)
    outcome = attrs.evolve(
        outcome, received=f"the key {KEY}", parts=((KEY, TOKEN),), exchange=exchange, submission=exchange
    )
    redacted = ReportRedaction([KEY]).redact_outcome(outcome)
    report = make_report(redacted)
    for text in (render_json(report), render_html(report), render_junit(report).decode(), repr(report)):
        assert KEY not in text
        assert TOKEN not in text
    assert redacted.exchange is not None and redacted.exchange.response is not None
    assert redacted.exchange.response.headers["x-request-id"] == "r-1"
    assert "$TINKER_API_KEY" in render_json(report)


def test_poll_is_shown_with_its_submission() -> None:
    """The submission is the exchange that returned the request_id of the poll."""
    created = WireResponse(
        status=200, headers={"content-type": "application/json"}, content=b'{"request_id": "f-1", "model_id": "m"}'
    )
    submission = Exchange(WireRequest(method="POST", path="/api/v1/forward", headers={}), "", created, "", 0.1)
    request = WireRequest(method="POST", path="/api/v1/retrieve_future", headers={}, content=b'{"request_id": "f-1"}')
    poll = Exchange(request, "", created, "", 0.1)
    assert find_submission(poll, [submission, poll]) is submission
    assert find_submission(submission, [submission, poll]) is None
    assert find_submission(attrs.evolve(poll, request=attrs.evolve(request, content=b'["f"]')), [submission]) is None


@pytest.mark.parametrize(
    ("identifiers", "expected"),
    [
        ([], ""),
        (["A-001"], "A-001"),
        (["A-001", "A-002"], "A-001, A-002"),
        (["A-001", "A-002", "A-003", "A-005", "B-006"], "A-001 to A-003, A-005, B-006"),
    ],
)
def test_consecutive_ids_are_joined(identifiers: list[str], expected: str) -> None:
    assert join_ids(identifiers) == expected
