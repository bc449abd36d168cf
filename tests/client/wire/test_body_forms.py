"""Tests of body forms, JSON and protobuf: the client learns the accepted form from the server's responses."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, Rule, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._wire import codec
from tinkerwire._wire.dialect import BATCH_OPERATIONS, Dialect
from tinkerwire.local import EmbeddedServer, EmbeddedTransport, Quirks
from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated.models import ClientConfigResponse

pytestmark = pytest.mark.timeout(60)
MODEL = "tinkerwire/byte-nano"
REJECTIONS = ("400", "404", "405", "406", "415", "422", "500", "501", "502", "dropped")
CONFIGS: dict[str, dict[str, Any]] = {
    "absent": {"missing": "client_config"},
    "without flags": {"flags": "absent"},
    "with flags": {},
}
WIRE = "0.22.7"
"""Wire version whose servers accept batches as JSON and as protobuf."""


class RecordingTransport(EmbeddedTransport):
    """Transport that records the sent requests."""

    def __init__(self, server: EmbeddedServer) -> None:
        super().__init__(server)
        self.requests: list[WireRequest] = []

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        self.requests.append(request)
        return await super().send(request, traffic, timeout_s)

    def list_batch_forms(self) -> list[str]:
        """Return the form of each sent batch."""
        paths = ("/api/v1/forward", "/api/v1/forward_backward")
        return [
            "protobuf" if request.headers["content-type"] == PROTOBUF else "JSON"
            for request in self.requests
            if request.path in paths
        ]


def train_three_steps(quirks: Quirks) -> tuple[list[float], Dialect, RecordingTransport]:
    """Train and return the losses, which show how often the weights changed, the dialect and the transport."""
    with EmbeddedServer(wire_version=WIRE, quirks=quirks, seed=1) as server:
        transport = RecordingTransport(server)
        with tw.ServiceClient(base_url="local", transport=transport, retry=FAST) as client:
            training = client.create_lora_training_client(MODEL, rank=4, seed=7)
            losses = []
            for _ in range(2):
                trained = training.forward_backward([datum()], "cross_entropy")
                training.optim_step(ADAM).result(TEST_TIMEOUT_S)
                losses.append(trained.result(TEST_TIMEOUT_S).metrics["loss:sum"])
            losses.append(training.forward([datum()], "cross_entropy").result(TEST_TIMEOUT_S).metrics["loss:sum"])
            return losses, client.dialect, transport


@pytest.fixture(scope="module")
def expected_losses() -> list[float]:
    """Return the losses of a server that rejects nothing."""
    return train_three_steps(Quirks())[0]


@pytest.mark.parametrize("executes_rejected", [False, True])
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("rejection", REJECTIONS)
@pytest.mark.parametrize("batches", ["json", "protobuf", "any"])
def test_rejected_batch_is_resent_in_other_form(
    expected_losses: list[float], batches: str, rejection: str, config: str, executes_rejected: bool
) -> None:
    """Only the first batch is resent, once and with its seq_id; a server that executed it does not repeat it."""
    quirks = Quirks(batches=batches, rejection=rejection, executes_rejected=executes_rejected, **CONFIGS[config])
    losses, dialect, transport = train_three_steps(quirks)
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    is_rejected = batches == "json" or (batches == "any" and executes_rejected)
    form = "JSON" if is_rejected else "protobuf"
    assert transport.list_batch_forms() == ["protobuf"] * is_rejected + [form] * 3
    assert dialect.protobuf_operations == (frozenset() if is_rejected else BATCH_OPERATIONS)
    assert not dialect.is_provisional
    assert dialect.source.endswith(f"it takes batches as {form}")
    discoveries = [request.path for request in transport.requests].count("/api/v1/client/config")
    assert discoveries == 1, "expected one extra request for the dialect, and at most one for the form"


def reject_protobuf(server: ScriptedServer, rejection: ScriptedResponse | Rule) -> Rule:
    """Return a rule that accepts batches as JSON only."""

    def rule(request: RecordedRequest) -> ScriptedResponse:
        if request.headers["content-type"] != PROTOBUF:
            return server.healthy_response(request)
        return rejection if isinstance(rejection, ScriptedResponse) else rejection(request)

    return rule


SERVER_ERROR = ScriptedResponse(b"Internal Server Error", status=500, headers={"content-type": "text/plain"})


def test_server_error_for_protobuf_costs_one_request(server: ScriptedServer) -> None:
    """A server that fails while writing its 422 costs two training clients one request in all."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    server.rules["forward_backward"] = reject_protobuf(server, SERVER_ERROR)
    with open_client(server.url, wire_version=None, retry=tw.RetryConfig()) as client:
        clients = [client.create_lora_training_client("base", rank=8).result(TEST_TIMEOUT_S) for _ in range(2)]
        futures = [training.forward_backward([datum()], "cross_entropy") for training in clients for _ in range(2)]
        for future in futures:
            future.result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        copy = pickle.loads(pickle.dumps(sampling))
        assert copy._connection.known_dialect == client.dialect
        assert client.dialect.protobuf_operations == frozenset()
    forms = [request.headers["content-type"] == PROTOBUF for request in server.named("forward_backward")]
    assert sorted(forms) == [False] * 4 + [True]


@pytest.mark.parametrize("config", [{}, {"proto_compress_fwdbwd": True}, None])
def test_batch_rejected_in_both_forms_shows_both_responses(
    server: ScriptedServer, config: dict[str, bool] | None
) -> None:
    """The error names the setting that helps, and comes without resends."""
    server.rules["client/config"] = lambda _: (
        ScriptedResponse({"detail": "no"}, 404) if config is None else ScriptedResponse(config)
    )
    invalid = ScriptedResponse({"detail": "no such loss"}, status=422)
    server.rules["forward_backward"] = lambda request: (
        SERVER_ERROR if request.headers["content-type"] == PROTOBUF else invalid
    )
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        with pytest.raises(tw.UnprocessableEntityError) as caught:
            training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    text = str(caught.value)
    for part in ("no such loss", "sent as JSON", "Internal Server Error", "protobuf: ", "wire_version"):
        assert part in text
    assert len(server.named("forward_backward")) <= 6


def test_conflict_in_other_form_resends_first_form(server: ScriptedServer) -> None:
    """A server executed the batch before it failed: the resend in the first form gets the result."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    conflict = ScriptedResponse({"detail": "this request was submitted before with another body"}, 409)
    protobuf = in_order(SERVER_ERROR, server.healthy_response)
    server.rules["forward_backward"] = lambda request: (
        protobuf(request) if request.headers["content-type"] == PROTOBUF else conflict
    )
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.protobuf_operations == BATCH_OPERATIONS
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    batches = server.named("forward_backward")
    assert [request.headers["content-type"] == PROTOBUF for request in batches] == [True, False, True]
    assert len({request.headers["x-idempotency-key"] for request in batches}) == 1
    assert {int(request.body["seq_id"]) for request in batches} == {1}
    assert server.bodies("optim_step")[0]["seq_id"] == 2


def test_busy_server_is_not_rejection(server: ScriptedServer) -> None:
    """503 in both forms is not a rejection: resends follow the policy in either form."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    busy = ScriptedResponse({"detail": "busy"}, status=503)
    responses = in_order(busy, busy, busy, busy, server.healthy_response)
    rule = reject_protobuf(server, SERVER_ERROR)
    server.rules["forward_backward"] = lambda request: (
        response if (response := responses(request)).status != 200 else rule(request)
    )
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.protobuf_operations == frozenset()
    assert {body["seq_id"] for body in server.bodies("forward_backward") if isinstance(body, dict)} == {1}
    server.rules["forward_backward"] = lambda _: busy
    with open_client(server.url, wire_version=None, retry=tw.RetryConfig(max_attempts=3, retry_delay_base=0)) as client:
        training = client.create_lora_training_client("base", rank=8).result(TEST_TIMEOUT_S)
        before = len(server.named("forward_backward"))
        with pytest.raises(tw.InternalServerError, match="busy"):
            training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert len(server.named("forward_backward")) - before == 3


@pytest.mark.parametrize(("status", "error"), [(401, tw.AuthenticationError), (402, tw.BillingError)])
def test_credential_errors_do_not_change_the_form(server: ScriptedServer, status: int, error: type[Exception]) -> None:
    """The batch is not tried in another form."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    server.rules["forward_backward"] = lambda _: ScriptedResponse({"detail": "no"}, status=status)
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        with pytest.raises(error):
            training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.is_provisional
    assert len(server.named("forward_backward")) == 1


def test_rate_limits_do_not_change_the_form(server: ScriptedServer) -> None:
    """The batch is resent in the same form."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    server.rules["forward_backward"] = in_order(
        ScriptedResponse({"detail": "later"}, status=429), server.healthy_response
    )
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.protobuf_operations == BATCH_OPERATIONS
    assert [request.headers["content-type"] for request in server.named("forward_backward")] == [PROTOBUF] * 2


def test_client_replaces_form_that_server_stops_accepting(server: ScriptedServer) -> None:
    """After the server changes the form that it accepts, one more request suffices."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        for rejection in (None, ScriptedResponse({"detail": "JSON, please"}, status=415)):
            if rejection is not None:
                server.rules["forward_backward"] = reject_protobuf(server, rejection)
            for _ in range(2):
                training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.protobuf_operations == frozenset({"forward"})
    forms = [request.headers["content-type"] == PROTOBUF for request in server.named("forward_backward")]
    assert forms == [True, True, True, False, False]


def test_invalid_batch_keeps_confirmed_form(server: ScriptedServer) -> None:
    """The client sends the first invalid batch once in the other form, and later ones only in the confirmed form."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    invalid = ScriptedResponse({"detail": "no such loss"}, status=422)
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        server.rules["forward_backward"] = lambda _: invalid
        for _ in range(3):
            with pytest.raises(tw.UnprocessableEntityError, match="no such loss"):
                training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert client.dialect.protobuf_operations == BATCH_OPERATIONS
    assert len(server.named("forward_backward")) == 1 + 4


def test_rejected_compression_is_disabled(server: ScriptedServer) -> None:
    """The client stops compressing even if the server's flags request it."""
    server.rules["client/config"] = lambda _: ScriptedResponse({"proto_compress_fwdbwd": True})

    def rule(request: RecordedRequest) -> ScriptedResponse:
        is_uncompressed = request.headers["content-type"] == PROTOBUF and "content-encoding" not in request.headers
        return (
            server.healthy_response(request)
            if is_uncompressed
            else ScriptedResponse({"detail": "unsupported encoding"}, status=415)
        )

    server.rules["forward_backward"] = rule
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        for _ in range(2):
            training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert not client.dialect.config.proto_compress_fwdbwd
    assert len(server.named("forward_backward")) == 4


def test_batches_are_sent_uncompressed_without_a_package_for_zstd(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that requests compression gets plain batches, and one warning names the extra."""
    server.rules["client/config"] = lambda _: ScriptedResponse({"proto_compress_fwdbwd": True})
    for package in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, package, None)
    codec.find_zstd.cache_clear()
    try:
        with open_client(server.url, wire_version=None) as client:
            training = client.create_lora_training_client("base", rank=8)
            for _ in range(2):
                training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
    finally:
        codec.find_zstd.cache_clear()
    assert all("content-encoding" not in request.headers for request in server.named("forward_backward"))
    assert caplog.text.count("tinkerwire[zstd]") == 1


def test_form_that_cannot_express_batch_is_skipped(server: ScriptedServer) -> None:
    """The client sends a batch with an image's address as JSON, because protobuf cannot hold the address."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    chunk = tw.types.ImageAssetPointerChunk(format="png", location="tinker://a/b", expected_tokens=2)
    image = tw.Datum(model_input=tw.ModelInput(chunks=[chunk]), loss_fn_inputs={"target_tokens": [1, 2]})
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([image], "cross_entropy").result(TEST_TIMEOUT_S)
    (request,) = server.named("forward_backward")
    assert request.headers["content-type"] == "application/json"


def test_forward_is_sent_as_json_without_its_protobuf_flag() -> None:
    """Servers with the first flag of protobuf only would read it as a forward_backward."""
    config = ClientConfigResponse()
    assert Dialect.from_client_config(config, {"proto_write_fwdbwd"}).protobuf_operations == {"forward_backward"}
    assert (
        Dialect.from_client_config(config, {"proto_write_fwdbwd", "fwd_via_fwdbwd"}).protobuf_operations
        == BATCH_OPERATIONS
    )
    assert Dialect.from_client_config(config, ()).is_provisional
    service = Dialect.from_client_config(config, {"proto_write_fwdbwd"}, is_tinker=True)
    assert service.protobuf_operations == BATCH_OPERATIONS
    assert not service.is_provisional


def test_sampling_discovers_no_body_form(server: ScriptedServer) -> None:
    """For the discovery, a client that only samples requests client/config and nothing else."""
    server.rules["client/config"] = lambda _: ScriptedResponse({})
    with open_client(server.url, wire_version=None) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert not server.named("forward_backward")
    assert len(server.named("client/config")) == 1
