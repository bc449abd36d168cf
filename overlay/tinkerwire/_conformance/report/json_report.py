"""The report as JSON; ``report.schema.json`` describes it."""

from __future__ import annotations

import base64
import json
from typing import Any

from tinkerwire_base.call import PROTOBUF

from ..exchange import Exchange, curl_line, shorten
from ..outcome import Outcome, Status
from ..prediction import Prediction
from .baseline import Comparison
from .run_report import RunReport, describe_breakage

FORMAT_VERSION = 1
MAX_STORED_BODY = 200_000
"""Characters of a body that the file has."""


def describe_report(report: RunReport, comparison: Comparison | None = None) -> dict[str, Any]:
    """Return the report as a JSON value."""
    passed, applicable = report.score()
    return {
        "format": FORMAT_VERSION,
        "tinkerwire": report.version,
        "url": report.url,
        "wire": report.wire,
        "wire_evidence": list(report.wire_evidence),
        "model": report.model,
        "started_at": report.started_at.isoformat().replace("+00:00", "Z"),
        "seconds": round(report.seconds, 3),
        "is_interrupted": report.is_interrupted,
        "holds": report.holds,
        "verdict": report.describe_verdict(),
        "unmet": report.unmet,
        "passed": passed,
        "applicable": applicable,
        "counts": _counts(report),
        "areas": [{"name": area, "counts": _counts(report, area)} for area in report.areas()],
        "predictions": None
        if report.predictions is None
        else [describe_prediction(item) for item in report.predictions],
        "comparison": None
        if comparison is None
        else {
            "baseline": comparison.baseline,
            "better": [change._asdict() for change in comparison.better],
            "worse": [change._asdict() for change in comparison.worse],
            "new": list(comparison.new),
            "gone": list(comparison.gone),
        },
        "requirements": [_requirement(outcome) for outcome in report.outcomes],
    }


def render_json(report: RunReport, comparison: Comparison | None = None) -> str:
    """Return the report as the text of a JSON file."""
    return (
        json.dumps(describe_report(report, comparison), indent=2, ensure_ascii=False).replace("\x7f", "\\u007f") + "\n"
    )


def _counts(report: RunReport, area: str | None = None) -> dict[str, int]:
    return {status.value: count for status, count in report.count(area).items()}


def describe_prediction(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as a JSON value."""
    return {
        "client": prediction.client,
        "verdict": prediction.verdict.value,
        "runs_on": prediction.runs_on or None,
        "broken": [
            {"feature": broken.feature.value, "words": broken.words, "is_seen": broken.is_seen}
            for broken in prediction.broken
        ],
        "reasons": list(prediction.reasons),
    }


def _requirement(outcome: Outcome) -> dict[str, Any]:
    requirement = outcome.requirement
    failed = outcome.status is Status.FAILED
    return {
        "id": requirement.id,
        "area": requirement.area,
        "level": requirement.level.value,
        "sentence": requirement.sentence,
        "status": outcome.status.value,
        "seconds": round(outcome.seconds, 3),
        "contract": list(requirement.contract),
        "since": requirement.since,
        "until": requirement.until,
        "expected": outcome.expected if failed else None,
        "received": outcome.received if failed else None,
        "parts": [{"name": name, "reason": reason} for name, reason in outcome.parts],
        "reason": outcome.reason or None,
        "remedy": requirement.remedy,
        "breaks": [
            {
                "oldest": breakage.oldest,
                "newest": breakage.newest,
                "feature": breakage.feature.value,
                "effect": breakage.effect,
                "text": describe_breakage(breakage),
            }
            for breakage in requirement.breaks
        ],
        "submission": None if outcome.submission is None else _exchange(outcome.submission),
        "exchange": None if outcome.exchange is None else _exchange(outcome.exchange),
    }


def _exchange(exchange: Exchange) -> dict[str, Any]:
    request, response = exchange.request, exchange.response
    return {
        "curl": curl_line(exchange),
        "request": {
            "method": request.method,
            "url": exchange.url,
            "headers": dict(request.headers),
            **_body(request.content or b"", request.headers.get("content-type", "")),
        },
        "response": None
        if response is None
        else {
            "status": response.status,
            "headers": dict(response.headers),
            **_body(response.content, exchange.media_type),
        },
        "error": exchange.error or None,
        "seconds": round(exchange.seconds, 3),
    }


def _body(content: bytes, media_type: str) -> dict[str, str | None]:
    """Return a body as text, or in base64 if it is binary."""
    if not content.startswith(b"\x28\xb5\x2f\xfd") and not media_type.startswith(PROTOBUF):
        try:
            return {"body": shorten(content.decode(), MAX_STORED_BODY), "body_base64": None}
        except UnicodeDecodeError:
            pass
    return {"body": None, "body_base64": base64.b64encode(content[:MAX_STORED_BODY]).decode()}
