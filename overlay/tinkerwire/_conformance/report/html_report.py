"""The report as one page of HTML, which needs neither network nor scripts; a script adds filters."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tinkerwire_base.call import WireRequest, WireResponse

from ..._page.document import render_document, render_facts
from ..exchange import MAX_TEXT, Exchange, body_text, curl_line, shorten
from ..outcome import Outcome, Status
from ..prediction import Prediction, Verdict
from ..requirement import Level
from .baseline import Change, Comparison
from .run_report import ClientEffect, RunReport, describe_breakage, join_ids, list_effects

FOLDER = Path(__file__).parent
MIN_DURATION_S = 0.05
"""Shorter tests are shown without their duration."""
VERDICT_MARKS = {
    Verdict.WORKS: "passed",
    Verdict.IN_PART: "blocked",
    Verdict.DOES_NOT_CONNECT: "failed",
    Verdict.UNKNOWN: "skipped",
}
"""Marks of outcomes whose colors the verdicts have."""


def render_html(report: RunReport, comparison: Comparison | None = None) -> str:
    """Return the page."""
    sections = [
        _head(report),
        _predictions(report),
        "" if comparison is None else _comparison(comparison),
        _areas(report),
        _filter(report),
        *(_area(report, area) for area in report.areas()),
    ]
    return render_document(
        f"Conformance to wire {report.wire}",
        sections,
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        script=(FOLDER / "page.js").read_text(encoding="utf-8"),
    )


def _head(report: RunReport) -> str:
    passed, applicable = report.score()
    facts = [
        (f"{passed} of {applicable}", "musts and shoulds passed"),
        (report.wire, "wire version"),
        (report.model or "none", "model"),
        (f"{report.started_at:%Y-%m-%d %H:%M} UTC", "start"),
        (f"{report.seconds:.0f} s", "duration"),
        (report.version, "tinkerwire"),
    ]
    kind = "good" if report.holds else "bad"
    evidence = "".join(f"<li>{escape(observation)}</li>" for observation in report.wire_evidence)
    return (
        f'<p class="path">{escape(report.url)}</p>'
        f'<p class="verdict {kind}">{escape(report.describe_verdict())}</p>'
        f"{render_facts(facts)}"
        f'<details class="exchange"><summary>Evidence of the wire version</summary><ul>{evidence}</ul></details>'
    )


def _predictions(report: RunReport) -> str:
    title = "<h2>Which clients will work</h2>"
    if report.predictions is None:
        return f"{title}<p>This run did not test what the prediction depends on: the area client_versions.</p>"
    rows = "".join(map(_prediction, report.predictions))
    return (
        f'{title}<table class="stacked"><thead><tr><th scope="col">client</th><th scope="col">prediction</th>'
        f'<th scope="col">does not work</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _prediction(prediction: Prediction) -> str:
    effects = list_effects(prediction)
    seen = [effect for effect in effects if effect.is_seen]
    risks = [effect for effect in effects if not effect.is_seen]
    more = f"<details><summary>{len(risks)} more in some situations</summary>{_effects(risks)}</details>"
    runs_on = f"<br>on SDK {escape(prediction.runs_on)}" if prediction.runs_on else ""
    mark = f'<span class="mark {VERDICT_MARKS[prediction.verdict]}">{prediction.verdict.value}</span>'
    return (
        f'<tr><th scope="row">{escape(prediction.client)}{runs_on}</th><td>{mark}</td>'
        f"<td>{_effects(seen)}{more if risks else ''}</td></tr>"
    )


def _effects(effects: Sequence[ClientEffect]) -> str:
    items = "".join(f"<li>{escape(effect.text)} ({_links(effect.reasons)})</li>" for effect in effects)
    return f"<ul>{items}</ul>" if items else ""


def _links(identifiers: Sequence[str]) -> str:
    return ", ".join(f'<a class="id" href="#{escape(name)}">{escape(name)}</a>' for name in identifiers) or "-"


def _comparison(comparison: Comparison) -> str:
    parts = [f"<h2>Since the baseline</h2><p>{escape(comparison.describe())}</p>"]
    for name, changes in (("Worse", comparison.worse), ("Better", comparison.better)):
        if changes:
            parts.append(f"<p><b>{name}:</b> {', '.join(map(_change, changes))}</p>")
    for name, identifiers in (("New", comparison.new), ("Gone", comparison.gone)):
        if identifiers:
            parts.append(f"<p><b>{name}:</b> {escape(join_ids(identifiers))}</p>")
    return "".join(parts)


def _change(change: Change) -> str:
    return f'<a href="#{escape(change.id)}">{escape(change.id)}</a> ({escape(change.before)} to {escape(change.now)})'


def _areas(report: RunReport) -> str:
    shown = [status for status, count in report.count().items() if count or status in (Status.PASSED, Status.FAILED)]
    head = "".join(f'<th scope="col" class="number">{escape(status.value)}</th>' for status in shown)
    rows = "".join(_area_row(report, area, shown) for area in [*report.areas(), None])
    return (
        f'<h2>Areas</h2><div class="wide"><table><thead><tr><th scope="col">area</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _area_row(report: RunReport, area: str | None, shown: list[Status]) -> str:
    counts = report.count(area)
    cells = "".join(f'<td class="number">{counts[status] or "-"}</td>' for status in shown)
    name = "all" if area is None else f'<a href="#area-{escape(area)}">{escape(_title(area))}</a>'
    return f'<tr><th scope="row">{name}</th>{cells}</tr>'


def _title(area: str) -> str:
    return area.replace("_", " ")


def _filter(report: RunReport) -> str:
    """Return the controls of the filter, which the script shows."""
    levels = [level.value for level in Level]
    statuses = [status.value for status, count in report.count().items() if count]
    selects = "".join(
        f'<label>{name} <select name="{name}"><option value="">all</option>'
        f"{''.join(f'<option>{escape(value)}</option>' for value in values)}</select></label>"
        for name, values in (("area", report.areas()), ("level", levels), ("outcome", statuses))
    )
    return (
        '<h2>Requirements</h2><form id="filter" role="search" hidden>'
        f'{selects}<label>text <input type="search" name="text"></label>'
        '<button type="reset">Show all</button><output id="shown" aria-live="polite"></output></form>'
    )


def _area(report: RunReport, area: str) -> str:
    failures = report.failures
    items = "".join(_item(outcome, failures) for outcome in report.outcomes if outcome.requirement.area == area)
    name = escape(area)
    return f'<section id="area-{name}" data-area="{name}"><h3>{escape(_title(area))}</h3>{items}</section>'


def _item(outcome: Outcome, failures: Sequence[Outcome]) -> str:
    requirement = outcome.requirement
    status = outcome.status.value
    is_open = " open" if outcome in failures else ""
    seconds = f"{outcome.seconds:.1f} s" if outcome.seconds >= MIN_DURATION_S else ""
    return (
        f'<details id="{escape(requirement.id)}" class="item" data-level="{requirement.level.value}" '
        f'data-outcome="{status}"{is_open}>'
        f'<summary><span class="id">{escape(requirement.id)}</span> '
        f'<span class="mark {status.replace(" ", "-")}">{status}</span> '
        f'<span class="level">{requirement.level.value}</span> '
        f'<span class="sentence">{escape(requirement.sentence)}</span> '
        f'<span class="time">{seconds}</span></summary>{_details(outcome)}</details>'
    )


def _details(outcome: Outcome) -> str:
    requirement = outcome.requirement
    rows: list[tuple[str, str]] = []
    if outcome.status is Status.FAILED:
        rows += [("expected", escape(outcome.expected)), ("received", escape(outcome.received))]
    elif outcome.reason:
        rows.append(("reason", escape(outcome.reason)))
    if outcome.status is Status.FAILED:
        rows.append(("what to do", escape(requirement.remedy)))
    rows += [("breaks", escape(describe_breakage(breakage))) for breakage in requirement.breaks]
    versions = f"since {requirement.since}" + (f", before {requirement.until}" if requirement.until else "")
    rows.append(("contract", f"{escape(', '.join(requirement.contract))} ({escape(versions)})"))
    if requirement.needs:
        rows.append(("needs", _links(requirement.needs)))
    texts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    if outcome.exchange is None:
        return f"<dl>{texts}</dl>"
    if outcome.submission is None:
        return f"<dl>{texts}</dl>{_exchange('request', outcome.exchange)}"
    return f"<dl>{texts}</dl>{_exchange('request', outcome.submission)}{_exchange('poll', outcome.exchange)}"


def _exchange(name: str, exchange: Exchange) -> str:
    request, response = exchange.request, exchange.response
    answer = escape(exchange.error) if response is None else _response(response, exchange)
    return (
        f'<p class="label">{name}</p><pre class="curl" tabindex="0">{escape(curl_line(exchange))}</pre>'
        f'<details class="exchange"><summary>{name.capitalize()} and response ({exchange.seconds:.2f} s)</summary>'
        f'<pre tabindex="0">{_request(request, exchange.url)}</pre><pre tabindex="0">{answer}</pre></details>'
    )


def _request(request: WireRequest, url: str) -> str:
    body = body_text(request.content, request.headers.get("content-type", "").partition(";")[0])
    return _message(f"{request.method} {url}", dict(request.headers), body)


def _response(response: WireResponse, exchange: Exchange) -> str:
    return _message(f"HTTP {response.status}", dict(response.headers), body_text(response.content, exchange.media_type))


def _message(first: str, headers: dict[str, str], body: str) -> str:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return escape("\n".join(lines) + "\n\n" + shorten(body, MAX_TEXT)).rstrip()
