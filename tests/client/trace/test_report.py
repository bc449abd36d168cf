"""The report: figures, text, page, JSON and Perfetto."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
import pytest

import tinkerwire as tw
from client.trace.conftest import NANO
from support.clients import datum
from tinkerwire._trace import report
from tinkerwire._trace.analysis import Analysis, analyze, percentile
from tinkerwire._trace.reading import Trace, read_trace

ASKED = 1000.0


def write_trace(path: Path, operations: Sequence[dict[str, Any]], **head: object) -> Trace:
    """Write a trace of operations whose times are seconds after its start, and read it."""
    first = {
        "tinkerwire_trace": 1, "tinkerwire": "0", "python": "3", "process": "1-a", "time": ASKED, "clock": 0.0,
        "omitted": 0, **head,
    }  # fmt: skip
    lines = [first]
    for number, operation in enumerate(operations, 1):
        defaults = {
            "id": number, "client": 1, "kind": "Sample", "step": 0, "events": [], "outcome": "done", "awaited": False,
            "requests": [],
        }  # fmt: skip
        lines.append({**defaults, **operation})
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return read_trace(path)


def sample(asked: float, end: float, events: Sequence[Any] = (), **members: object) -> dict[str, Any]:
    """Return a sample; its first events are given, and the others follow from ``end``."""
    return {"asked": asked, "end": end, "events": list(events), **members}


def analysis_of(path: Path, *operations: dict[str, Any]) -> Analysis:
    """Return the figures of operations."""
    return analyze(write_trace(path, operations))


def test_phases_percentiles_and_time_under_way(path: Path) -> None:
    """Two operations at once count once as time under way, and twice in the sums."""
    events = ["start", 1.0, "slot", 2.0, 1, None, "send", 2.5, 1, 100, "response", 3.0, 1, 200, 50]
    events += ["poll", 3.0, 1, 10, "ready", 7.0, 1, 1000, "decoded", 7.5, 1]
    analysis = analysis_of(path, sample(0.0, 8.0, events), sample(4.0, 10.0))
    (row,) = analysis.kinds
    assert row.phases == pytest.approx(
        {"queue": 2.0, "encode": 0.5, "submit": 0.5, "server": 4.0, "decode": 0.5, "deliver": 0.5 + 6.0}
    )
    assert (row.total, row.busy, analysis.duration) == pytest.approx((14.0, 10.0, 10.0))
    assert (row.p50, row.max) == pytest.approx((6.0, 8.0))
    assert (row.bytes_out, row.bytes_in, row.polls, row.requests) == (110, 1050, 1, 1)
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.0


def test_waits_name_their_cause(path: Path) -> None:
    batch = {"kind": "ForwardBackward", "model_id": "m"}
    first = sample(0.0, 5.0, ["start", 0.0, "turn", 0.0], **batch)
    second = sample(1.0, 6.0, ["start", 1.0, "turn", 4.0], kind="OptimStep", model_id="m", awaited=True)
    made = sample(6.0, 8.0, kind="SaveWeightsForSampler", sampler="s")
    drawn = sample(6.5, 12.0, ["start", 6.5, "slot", 9.0, 1, 2.0], sampler="s")
    waits = {(row.kind, row.cause): row.total for row in analysis_of(path, first, second, made, drawn).waits}
    assert waits == pytest.approx(
        {
            ("OptimStep", "the turn of ForwardBackward"): 3.0,
            ("the program", "the result of OptimStep"): 5.0,
            ("Sample", "its sampler (SaveWeightsForSampler)"): 1.5,
            ("Sample", "a slot (RetryConfig.max_connections)"): 1.0,
        }
    )


def test_stragglers_retries_and_silence(path: Path) -> None:
    retried = ["start", 20.0, "send", 20.0, 1, 10, "retry", 21.0, 1, "HTTP 503", 2.5, "poll_error", 29.0, 1, "HTTP 500"]
    operations = [sample(number, number + 1.0) for number in range(9)]
    analysis = analysis_of(path, *operations, sample(20.0, 30.0, retried))
    (straggler,) = analysis.stragglers
    assert (straggler.number, straggler.duration, straggler.median, straggler.retries) == (10, 10.0, 1.0, 2)
    assert {(row.reason, row.count, row.paused) for row in analysis.retries} == {
        ("HTTP 503", 1, 2.5),
        ("HTTP 500", 1, 0.0),
    }
    assert analysis.silence is not None
    assert (analysis.silence.duration, analysis.silence.under_way) == (11.0, {})
    assert analysis.idle == pytest.approx(11.0)


def test_text_states_how_many_rows_it_omits(path: Path) -> None:
    """The page has all rows."""
    retries = [item for number in range(12) for item in ("retry", float(number), 1, f"HTTP {500 + number}", 0.0)]
    trace = write_trace(path, [sample(0.0, 12.0, retries)])
    text = report.format_table(trace)
    assert "Retries (the first 10 of 12)" in text
    assert text.count("HTTP 5") == 10
    report.write_html(trace, path.with_suffix(".html"))
    assert path.with_suffix(".html").read_text().count("HTTP 5") == 12


def test_steps_end_with_their_optim_step(path: Path) -> None:
    operations = [
        sample(0.0, 2.0, kind="ForwardBackward", step=0),
        sample(1.0, 3.0, kind="OptimStep", step=0),
        sample(5.0, 6.0, step=1),
        sample(7.0, 8.0, kind="OptimStep", step=1),
        sample(9.0, 9.5, kind="SaveWeights", step=2),
    ]
    steps = analysis_of(path, *operations).steps
    assert [(row.step, row.is_complete) for row in steps] == [(1, True), (2, True), (3, False)]
    assert [(row.duration, row.idle) for row in steps] == [(3.0, 0.0), (3.0, 1.0), (0.5, 0.0)]
    assert steps[1].counts == {"Sample": 1, "OptimStep": 1}


def test_tokens_by_model_and_no_cost(path: Path) -> None:
    operations = [
        sample(0.0, 1.0, model="a", input_tokens=10, output_tokens=3, cached_tokens=4),
        sample(0.0, 1.0, model="a", kind="ForwardBackward", input_tokens=7),
    ]
    analysis = analysis_of(path, *operations)
    (row,) = analysis.models
    assert (row.trained_tokens, row.prompt_tokens, row.cached_prompt_tokens, row.sampled_tokens) == (7, 10, 4, 3)
    assert "AdminClient.get_billing_usage()" in analysis.cost


def test_unreadable_lines_are_skipped_and_counted(path: Path) -> None:
    write_trace(path, [sample(0.0, 1.0)], omitted=5)
    with path.open("ab") as file:
        file.write(
            b'\n[1]\n{"id":1}\n{"id":2,"events":["later",1.0]}\n{"lost":4}\n{"lost":"x"}\n{"closed":null}\n{"id":'
        )
    trace = read_trace(path)
    assert (len(trace.operations), trace.unreadable, trace.omitted, trace.lost) == (1, 6, 5, 4)
    text = report.format_table(trace)
    assert "5 older operations are omitted" in text
    assert "4 operations could not be written" in text
    assert "6 lines could not be read" in text


def test_other_files_are_rejected(path: Path) -> None:
    path.write_text("notes")
    with pytest.raises(ValueError, match="not a trace of tinkerwire"):
        read_trace(path)
    path.write_text('{"tinkerwire_trace":2}\n')
    with pytest.raises(ValueError, match="version 2"):
        read_trace(path)
    with pytest.raises(FileNotFoundError):
        read_trace(path.with_name("missing"))


@pytest.fixture
def trained(traced: Callable[..., Trace]) -> Trace:
    """Return the trace of a real run."""

    def program(service: tw.ServiceClient) -> None:
        training = service.create_lora_training_client(NANO, rank=4)
        for _ in range(4):
            training.forward_backward([datum(1, 2, 3)], "cross_entropy").result()
            training.optim_step(tw.AdamParams(learning_rate=1e-3)).result()
        sampling = training.save_weights_and_get_sampling_client()
        prompt = tw.ModelInput.from_ints([1, 2, 3])
        tw.gather([sampling.sample(prompt, 1, tw.SamplingParams(max_tokens=2)) for _ in range(20)]).result()

    return traced(program)


def test_table_has_all_sections_and_fits_a_wide_terminal(trained: Trace) -> None:
    text = report.format_table(trained)
    for title in (
        "Operations",
        "Phases",
        "Steps",
        "Waits",
        "Longest silence",
        "Tokens",
        "Cost",
        "Advice",
    ):
        assert re.search(f"^{title}", text, re.MULTILINE), title
    assert "ForwardBackward" in text
    assert all(len(line) < 180 for line in text.splitlines())


def test_empty_trace_has_a_report(path: Path) -> None:
    trace = write_trace(path, [])
    assert "0 operations of 1 process" in report.format_table(trace)
    assert report.to_json(trace)["kinds"] == []
    report.write_html(trace, path.with_suffix(".html"))
    report.write_perfetto(trace, path.with_suffix(".json"))


def test_json_has_the_figures(trained: Trace) -> None:
    value = json.loads(json.dumps(report.to_json(trained)))
    assert value["version"] == 1
    assert {row["kind"] for row in value["kinds"]} >= {"ForwardBackward", "OptimStep", "Sample"}
    assert [advice["rule"] for advice in value["advice"]] == ["forward_backward awaited before optim_step"]


class Page(HTMLParser):
    """Reads a page: its tags in pairs, and the addresses that it loads."""

    VOID = frozenset({"meta", "br", "line"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_needs_no_network(trained: Trace, tmp_path: Path) -> None:
    """It is well-formed, loads nothing, has no script, and has both colour schemes and a narrow layout."""
    report.write_html(trained, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.open == []
    assert page.addresses == []
    assert "script" not in page.tags
    assert {"table", "svg"} <= page.tags
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 640px" in text
    assert "forward_backward awaited before optim_step" in text


def test_page_escapes_names(path: Path) -> None:
    name = "<script>alert(1)</script>"
    trace = write_trace(path, [sample(0.0, 1.0, kind=name, model=name, input_tokens=1)])
    report.write_html(trace, path.with_suffix(".html"))
    text = path.with_suffix(".html").read_text()
    assert name not in text
    assert "&lt;script&gt;" in text


def test_perfetto_file_has_the_trace_event_format(trained: Trace, tmp_path: Path) -> None:
    """Slices of a track nest or follow each other; every operation has one, with its phases inside."""
    report.write_perfetto(trained, tmp_path / "run.json")
    value = json.loads((tmp_path / "run.json").read_text())
    events = value["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X", "i"}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in slices} == named
    operations = [event for event in slices if event["cat"] == "operation"]
    assert len(operations) == len(trained.operations)
    for place in named:
        track = sorted((event["ts"], -event["dur"]) for event in slices if (event["pid"], event["tid"]) == place)
        stack: list[float] = []
        for begin, negative in track:
            end = begin - negative
            while stack and stack[-1] <= begin + 0.01:
                stack.pop()
            assert not stack or end <= stack[-1] + 0.01
            stack.append(end)
