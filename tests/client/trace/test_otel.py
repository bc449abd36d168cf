"""OpenTelemetry: spans and metrics in the in-memory exporters of its SDK."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import ScriptedResponse, ScriptedServer, in_order
from tinkerwire._extras import MissingPackageError


class Exported:
    """Spans and metrics of a program."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meter_provider = MeterProvider(metric_readers=[self.reader])

    def span(self, name: str) -> ReadableSpan:
        """Return the only span of a name."""
        (span,) = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return span

    def points(self, name: str) -> list[Any]:
        """Return the data points of a metric."""
        data = self.reader.get_metrics_data()
        assert data is not None
        found = [
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        ]
        return [point for metric in found for point in metric.data.data_points]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    """Set the global providers for the test."""
    found = Exported()
    monkeypatch.setattr(trace, "get_tracer", found.tracer_provider.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", found.meter_provider.get_meter)
    yield found
    found.tracer_provider.shutdown()
    found.meter_provider.shutdown()


def test_sample_is_a_span_of_its_caller(server: ScriptedServer, exported: Exported) -> None:
    """It has the attributes of the conventions, is a child of the caller's span, and retries and polls are events."""
    server.rules["asample"] = in_order(ScriptedResponse(status=500), server.healthy_response)
    tracer = exported.tracer_provider.get_tracer("program")
    with open_client(server.url, opentelemetry=True) as service:
        sampling = service.create_sampling_client(base_model="base").result()
        with tracer.start_as_current_span("step") as parent:
            response = sampling.sample(PROMPT, 1, PARAMS).result()
    span = exported.span("text_completion base")
    assert span.parent is not None
    assert span.parent.span_id == parent.get_span_context().span_id
    assert span.kind is trace.SpanKind.CLIENT
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.operation.name"] == "text_completion"
    assert attributes["gen_ai.provider.name"] == "tinker"
    assert attributes["gen_ai.request.model"] == "base"
    assert attributes["gen_ai.usage.input_tokens"] == PROMPT.length
    assert attributes["gen_ai.usage.output_tokens"] == len(response.sequences[0].tokens)
    assert (attributes["server.address"], attributes["tinkerwire.retries"]) == ("127.0.0.1", 1)
    events = [event.name for event in span.events]
    assert events == ["send", "response", "retry", "send", "response", "poll", "ready"]
    assert dict(span.events[2].attributes or {})["reason"] == "HTTP 500"
    assert span.start_time is not None
    assert span.end_time is not None
    stamps = [span.start_time, *(event.timestamp for event in span.events), span.end_time]
    assert stamps == sorted(stamps)
    assert span.status.is_ok or span.status.status_code is trace.StatusCode.UNSET


def test_failed_operation_is_an_error(server: ScriptedServer, exported: Exported) -> None:
    """The span and the metrics name the class of the error, and never its text."""
    server.rules["get_server_capabilities"] = in_order(ScriptedResponse(status=400, body={"detail": "private"}))
    with open_client(server.url, opentelemetry=True) as service, pytest.raises(tw.BadRequestError):
        service.get_server_capabilities()
    span = exported.span("get_server_capabilities")
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "BadRequestError"
    assert "private" not in span.to_json()
    (point,) = exported.points("gen_ai.client.operation.duration")
    assert point.attributes["error.type"] == "BadRequestError"


def test_metrics_follow_the_conventions(server: ScriptedServer, exported: Exported) -> None:
    with open_client(server.url, opentelemetry=True) as service:
        sampling = service.create_sampling_client(base_model="base").result()
        responses = tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(5)]).result()
    durations = {
        point.attributes["gen_ai.operation.name"]: point
        for point in exported.points("gen_ai.client.operation.duration")
    }
    assert durations["text_completion"].count == 5
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum for point in exported.points("gen_ai.client.token.usage")
    }
    assert tokens == {
        "input": 5 * PROMPT.length,
        "output": sum(len(response.sequences[0].tokens) for response in responses),
    }
    phases = {point.attributes["tinkerwire.phase"] for point in exported.points("tinkerwire.phase.duration")}
    assert phases == {"queue", "encode", "submit", "server", "decode", "deliver"}
    directions = {point.attributes["network.io.direction"] for point in exported.points("tinkerwire.io")}
    assert directions == {"transmit", "receive"}


def test_variable_turns_export_on(server: ScriptedServer, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINKERWIRE_OPENTELEMETRY", "1")
    with open_client(server.url) as service:
        service.get_server_capabilities()
    assert exported.span("get_server_capabilities")
    monkeypatch.setenv("TINKERWIRE_OPENTELEMETRY", "yes")
    with pytest.raises(ValueError, match="TINKERWIRE_OPENTELEMETRY must be 1 or 0, got 'yes'"):
        tw.ServiceClient(base_url="local")


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingPackageError, match=r"tinkerwire\[otel\]"):
        tw.ServiceClient(base_url="local", opentelemetry=True)
    with pytest.raises(TypeError, match=r"^opentelemetry: expected bool, got str$"):
        tw.ServiceClient(base_url="local", opentelemetry="yes")  # type: ignore[arg-type]
