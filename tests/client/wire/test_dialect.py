"""Tests of dialect discovery, of requests in a dialect, and of its errors."""

from __future__ import annotations

import pickle
from typing import Any, Literal

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, Rule, ScriptedResponse, ScriptedServer, in_order
from tinkerwire import types
from tinkerwire._server.http.protobuf import decode_request, encode_result
from tinkerwire._wire.dialect import BATCH_OPERATIONS, Dialect
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import PROTOBUF
from tinkerwire_generated import models as m
from tinkerwire_generated.availability import VERSIONS
from tinkerwire_generated.protobuf import message_class

pytestmark = pytest.mark.timeout(60)
MISSING = ScriptedResponse({"detail": "Not Found"}, status=404)
CONFIG = ScriptedResponse({"pjwt_auth_enabled": False})
OUTPUT = m.ForwardBackwardOutput(
    loss_fn_output_type="T",
    loss_fn_outputs=[{"logprobs": m.TensorData(data=[-1.0, -2.0], dtype="float32", shape=[2])}],
    metrics={"loss:sum": 3.0},
)
SAMPLE = m.SampleResponse(sequences=[m.SampledSequence(stop_reason="stop", tokens=[4, 5], logprobs=[-0.5, -0.25])])


def is_protobuf(request: RecordedRequest) -> bool:
    """Return whether a batch arrived as protobuf."""
    return request.headers["content-type"] == PROTOBUF


def accept_forms(server: ScriptedServer, *, json: bool, protobuf: bool, rejection: int = 415) -> None:
    """Let the server accept batches in some forms and reject the others."""

    def rule(request: RecordedRequest) -> ScriptedResponse:
        if protobuf if is_protobuf(request) else json:
            return server.healthy_response(request)
        return ScriptedResponse({"detail": "unsupported body form"}, status=rejection)

    server.rules["forward_backward"] = rule
    server.rules["forward"] = rule if json else lambda _: MISSING


def train(client: tw.ServiceClient) -> None:
    """Train on some batches."""
    training = client.create_lora_training_client("base", rank=8)
    for _ in range(2):
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        training.forward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("has_config", [True, False])
@pytest.mark.parametrize(
    ("json", "protobuf", "rejection"),
    [(True, False, 415), (True, False, 422), (True, False, 400), (False, True, 415), (True, True, 415)],
)
def test_accepted_form_is_discovered(
    server: ScriptedServer, has_config: bool, json: bool, protobuf: bool, rejection: int
) -> None:
    """The discovery takes at most two requests; a rejected batch is resent in the other form with the same seq_id."""
    server.rules["client/config"] = lambda _: CONFIG if has_config else MISSING
    accept_forms(server, json=json, protobuf=protobuf, rejection=rejection)
    with open_client(server.url, wire_version=None) as client:
        train(client)
        dialect = client.dialect
    assert len(server.named("client/config")) == 1
    batches = [request for request in server.requests if request.name in BATCH_OPERATIONS]
    is_resent = not protobuf
    assert len(batches) == 4 + is_resent
    assert [request.body["seq_id"] for request in batches][: 1 + is_resent] == [1] * (1 + is_resent)
    assert [is_protobuf(request) for request in batches[-4:]] == [protobuf] * 4
    assert dialect.protobuf_operations == (BATCH_OPERATIONS if protobuf else frozenset())
    assert not dialect.is_provisional
    assert (dialect.min_version, dialect.max_version) == (
        ("0.18.2", VERSIONS[-1]) if has_config else ("0.3.0", VERSIONS[-1] if protobuf else "0.16.1")
    )


@pytest.mark.parametrize("version", ["0.16.1", "0.38.0"])
def test_wire_version_skips_discovery(server: ScriptedServer, version: str) -> None:
    """The client sends only the requests of the operations."""
    accept_forms(server, json=version == "0.16.1", protobuf=version == "0.38.0")
    with open_client(server.url, wire_version=version) as client:
        train(client)
        assert client.dialect == Dialect.for_version(version)
    assert "client/config" not in [request.name for request in server.requests]
    assert len([request for request in server.requests if request.name in BATCH_OPERATIONS]) == 4


def test_invalid_batch_does_not_change_form(server: ScriptedServer) -> None:
    """After a rejection in both forms, the error describes the first one, and later batches use the first form."""
    server.rules["client/config"] = lambda _: CONFIG
    invalid = ScriptedResponse({"detail": "no such loss"}, status=422)
    json_rejected = ScriptedResponse({"detail": "protobuf only"}, status=415)
    server.rules["forward_backward"] = in_order(invalid, json_rejected, server.healthy_response)
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        with pytest.raises(tw.UnprocessableEntityError, match="no such loss"):
            training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        assert not client.dialect.is_provisional
    batches = server.named("forward_backward")
    assert [is_protobuf(request) for request in batches] == [True, False, True]
    assert [request.body["seq_id"] for request in batches] == [1, 1, 1]


def test_failed_discovery_is_retried(server: ScriptedServer) -> None:
    """The client retries the discovery after an error; operations that need the dialect raise a permanent error."""
    server.rules["client/config"] = in_order(ScriptedResponse(status=503), CONFIG)
    with open_client(server.url, wire_version=None) as client:
        assert client.dialect.source == "discovered: the server has client/config"
    server.rules["client/config"] = in_order(ScriptedResponse({"detail": "unknown key"}, status=401), MISSING)
    with open_client(server.url, wire_version=None) as client:
        with pytest.raises(tw.AuthenticationError, match="unknown key"):
            client.get_server_capabilities()
        assert client.get_server_capabilities().supported_models
        assert client.dialect.max_version == "0.16.1"


def test_operations_share_one_discovery(server: ScriptedServer) -> None:
    """All operations wait for one response."""
    server.rules["client/config"] = lambda _: ScriptedResponse(CONFIG.body, delay_s=0.05)
    with open_client(server.url, wire_version=None) as client:
        rest = client.create_rest_client()
        for future in [rest.list_training_runs() for _ in range(20)]:
            future.result(TEST_TIMEOUT_S)
    assert len(server.named("client/config")) == 1


def test_fields_of_some_versions_are_omitted_at_their_default(server: ScriptedServer) -> None:
    """For a range of versions, the client sends such a field only if its value differs from the default."""
    server.rules["client/config"] = lambda _: CONFIG
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.save_state("a").result(TEST_TIMEOUT_S)
        training.save_state("a", overwrite=True).result(TEST_TIMEOUT_S)
    default, changed = server.bodies("save_weights")
    assert "overwrite" not in default
    assert changed["overwrite"] is True


def test_unsupported_fields_are_rejected_by_name(server: ScriptedServer) -> None:
    """The error names field, first version and dialect, and nothing is sent."""
    server.rules["client/config"] = lambda _: MISSING
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8).result(TEST_TIMEOUT_S)
        before = len(server.requests)
        with pytest.raises(tw.DialectError) as caught:
            training.save_state("a", overwrite=True).result(TEST_TIMEOUT_S)
        dialect = client.dialect
        assert len(server.requests) == before
        training.save_state("a").result(TEST_TIMEOUT_S)
    text = str(caught.value)
    for part in ("SaveWeightsRequest.overwrite", "from 0.20.0", "wire 0.3.0 to 0.16.1", "no client/config"):
        assert part in text
    assert caught.value.dialect == dialect
    assert pickle.loads(pickle.dumps(caught.value)).dialect == dialect
    assert [body["seq_id"] for body in server.bodies("save_weights")] == [1]


def test_rejection_names_dialect(server: ScriptedServer) -> None:
    """The error names the dialect if the server may not know a field."""
    server.rules["save_weights"] = lambda _: ScriptedResponse({"detail": "unknown field"}, status=422)
    with open_client(server.url, wire_version="0.30.4") as client:
        training = client.create_lora_training_client("base", rank=8)
        with pytest.raises(
            tw.UnprocessableEntityError, match=r"unknown field.*wire 0\.30\.4 \(wire_version\)"
        ) as caught:
            training.save_state("a").result(TEST_TIMEOUT_S)
        assert caught.value.dialect == client.dialect


def respond_by_kind(results: dict[str, ScriptedResponse], server: ScriptedServer) -> Rule:
    """Return a rule that gives results for some kinds of requests, and the default results for others."""
    return lambda request: results.get(request.headers["x-tinker-request-type"]) or server.healthy_response(request)


@pytest.mark.parametrize("version", ["0.16.1", "0.18.2", "0.38.0", None])
@pytest.mark.parametrize("form", ["protobuf", "tagged", "untagged"])
def test_results_are_read_in_any_form(server: ScriptedServer, version: str | None, form: str) -> None:
    """The client reads protobuf and JSON with and without tags, with unknown fields and values."""
    server.rules["client/config"] = lambda _: CONFIG
    if form == "protobuf":
        headers = {"content-type": PROTOBUF}
        output = ScriptedResponse(encode_result(OUTPUT), headers=headers)
        sample = ScriptedResponse(encode_result(SAMPLE), headers=headers)
    else:
        tag = {"type": "sample"} if form == "tagged" else {}
        sequence = {"stop_reason": "flood", "tokens": [4, 5], "logprobs": [-0.5, -0.25], "new": 1}
        sample = ScriptedResponse({"sequences": [sequence], **tag, "later": {"a": 1}})
        logprobs = {"data": [-1.0, -2.0], "dtype": "float32", "shape": [2]}
        fields = {"loss_fn_output_type": "T", "loss_fn_outputs": [{"logprobs": logprobs}], "metrics": {"loss:sum": 3.0}}
        output = ScriptedResponse(fields)
    server.rules["retrieve_future"] = respond_by_kind({"ForwardBackward": output, "Sample": sample}, server)
    with open_client(server.url, wire_version=version) as client:
        training = client.create_lora_training_client("base", rank=8)
        trained = training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S)
        sampled = client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert trained.metrics == {"loss:sum": 3.0}
    assert trained.loss_fn_outputs[0]["logprobs"].tolist() == [-1.0, -2.0]
    assert list(sampled.sequences[0].tokens) == [4, 5]
    assert sampled.sequences[0].stop_reason == ("stop" if form == "protobuf" else "flood")
    if form != "protobuf":
        assert sampled.extra_fields == {"later": {"a": 1}}
        assert sampled.sequences[0].extra_fields == {"new": 1}


def test_accept_lists_readable_media_types() -> None:
    """Newer versions accept protobuf, for samples earlier than for batches, and the newest no JSON."""
    kinds = (types.SampleResponse, types.ForwardBackwardOutput, types.OptimStepResponse)
    json = "application/json"
    both_types = f"{PROTOBUF}, {json}"
    accepted = {
        version: [Dialect.for_version(version).accept(kind) for kind in kinds]
        for version in ("0.16.1", "0.18.2", "0.19.0", "0.25.0")
    }
    assert accepted == {
        "0.16.1": [json, json, json],
        "0.18.2": [both_types, json, json],
        "0.19.0": [both_types, both_types, json],
        "0.25.0": [PROTOBUF, PROTOBUF, json],
    }
    assert Dialect.from_client_config(None).accept(types.SampleResponse) == json
    assert Dialect.from_client_config(types.ClientConfigResponse()).accept(types.SampleResponse) == both_types


def test_malformed_protobuf_raises_validation_error(server: ScriptedServer) -> None:
    """The error describes bytes that cannot be parsed, or the result that has no protobuf message."""
    headers = {"content-type": PROTOBUF}
    results = {
        "Sample": ScriptedResponse(b"\xff\xff", headers=headers),
        "OptimStep": ScriptedResponse(b"", headers=headers),
    }
    server.rules["retrieve_future"] = respond_by_kind(results, server)
    with open_client(server.url, wire_version="0.38.0") as client:
        sampling = client.create_sampling_client(base_model="base")
        with pytest.raises(tw.APIResponseValidationError, match="SampleResponse: 2 bytes"):
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        training = client.create_lora_training_client("base", rank=8)
        with pytest.raises(tw.APIResponseValidationError, match=r"OptimStepResponse: .* has no protobuf message"):
            training.optim_step(tw.AdamParams()).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("ids", [None, [], ["q1"], ["q1", "q2"]])
def test_sequences_get_ids_of_future(server: ScriptedServer, ids: list[str] | None) -> None:
    """The ids are those of the future; a future without ids or with too few leaves the others None."""
    future = {"request_id": "asample/1/0", **({} if ids is None else {"sample_sequence_ids": ids})}
    server.rules["asample"] = lambda _: ScriptedResponse(future)
    result = {"sequences": [{"stop_reason": "stop", "tokens": [1]}, {"stop_reason": "stop", "tokens": [2]}]}
    server.on_poll("Sample", lambda _: ScriptedResponse(result))
    with open_client(server.url, wire_version="0.38.0") as client:
        sampled = client.create_sampling_client(base_model="base").sample(PROMPT, 2, PARAMS).result(TEST_TIMEOUT_S)
    assert [sequence.sequence_id for sequence in sampled.sequences] == [*(ids or []), None, None][:2]


def test_sequences_with_ids_keep_their_arrays(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a protobuf message become lists only on access."""
    monkeypatch.setattr("tinkerwire_base.list_array.ArrayCodec.to_list", None)
    monkeypatch.setattr("tinkerwire_base.list_array.TopKCodec.to_list", None)
    numbers, pairs = np.arange(2, dtype=np.float32), {"k": 1, "length": 2}
    tokens, logprobs = numbers.astype(np.int32).tobytes(), numbers.tobytes()
    topk = {**pairs, "token_ids": tokens, "logprobs": logprobs}
    sample = {"tokens": tokens, "logprobs": logprobs, "topk_sampled_logprobs": topk}
    message = message_class("SampleResponse")(sequences=[sample], prompt_logprobs=logprobs, topk_prompt_logprobs=topk)
    server.rules["asample"] = lambda _: ScriptedResponse({"request_id": "asample/1/0", "sample_sequence_ids": ["q1"]})
    server.on_poll(
        "Sample", lambda _: ScriptedResponse(message.SerializeToString(), headers={"content-type": PROTOBUF})
    )
    with open_client(server.url, wire_version="0.38.0") as client:
        sampled: Any = (
            client.create_sampling_client(base_model="base")
            .sample(PROMPT, 1, PARAMS, True, 1, 1)
            .result(TEST_TIMEOUT_S)
        )
    (sequence,) = sampled.sequences
    assert sequence.sequence_id == "q1"
    for array, kind in (
        (sequence.tokens_np, np.int32),
        (sequence.logprobs_np, np.float32),
        (sampled.prompt_logprobs_np, "f4"),
    ):
        assert array.dtype == kind and array.tolist() == [0, 1] and not array.flags.owndata
    for matrices in (sequence.topk_logprobs_np, sampled.topk_prompt_logprobs_np):
        assert matrices.token_ids.tolist() == matrices.logprobs.tolist() == [[0], [1]]


def test_client_polls_again_after_result_size(server: ScriptedServer) -> None:
    """A response with only the size of the result does not end the operation."""
    size = ScriptedResponse({"status": "complete_metadata", "response_payload_size": 12})
    server.on_poll("OptimStep", in_order(size, server.healthy_response))
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base", rank=8)
        assert training.optim_step(tw.AdamParams()).result(TEST_TIMEOUT_S).metrics == {}
    assert len(server.polls("OptimStep")) == 2


def test_server_limits_shrink_requests(server: ScriptedServer) -> None:
    """The limits of the server hold where they are below those of the client."""
    server.rules["client/config"] = lambda _: ScriptedResponse({"fwdbwd_max_chunk_len": 2})
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum(i) for i in range(5)], "cross_entropy").result(TEST_TIMEOUT_S)
    assert [len(body["data"]) for body in server.bodies("forward_backward")] == [2, 2, 1]


@pytest.mark.parametrize(("status", "detail"), [("success", None), ("errored", "it broke")])
def test_session_status_is_sent_if_version_has_it(
    server: ScriptedServer, status: Literal["success", "errored"], detail: str | None
) -> None:
    """The client does not send the status to a server of a version without the operation."""
    for version, response, expected in (
        ("0.38.0", ScriptedResponse(), 1),
        ("0.27.2", MISSING, 1),
        ("0.26.2", ScriptedResponse(), 0),
    ):
        server.requests.clear()
        server.rules["sessions/s1/finish"] = lambda _, response=response: response  # type: ignore[misc]
        client = tw.ServiceClient(base_url=server.url, api_key="k", wire_version=version)
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        client.close(status, detail).result(TEST_TIMEOUT_S)
        assert server.bodies("sessions/s1/finish") == [{"reason": {"type": status}, "detail": detail}] * expected


def test_text_in_loss_config_requires_newer_version(server: ScriptedServer) -> None:
    """Protobuf has texts in loss_fn_config since 0.26.2."""
    for version in ("0.16.1", "0.25.0"):
        with open_client(server.url, wire_version=version) as client:
            training = client.create_lora_training_client("base", rank=8)
            with pytest.raises(tw.DialectError, match=r"loss_fn_config.*0\.26\.2|0\.26\.2.*loss_fn_config") as caught:
                training.forward_backward([datum()], "ppo", {"mode": "x"}).result(TEST_TIMEOUT_S)
            assert caught.value.dialect == Dialect.for_version(version)
    with open_client(server.url, wire_version="0.26.2") as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "ppo", {"mode": "x", "clip": 0.5}).result(TEST_TIMEOUT_S)
    (body,) = server.bodies("forward_backward")
    assert body["loss_fn_config_v2"] == {"mode": {"text": "x"}, "clip": {"number": 0.5}}


def test_contradictory_options_are_rejected() -> None:
    """The client rejects invalid, too old and too new versions, and flags without their version."""
    for version in ("0.99.0", "1.0.0"):
        with pytest.raises(ValueError, match="newest"):
            Dialect.for_version(version)
    with pytest.raises(ValueError, match="oldest"):
        Dialect.for_version("0.2.0")
    with pytest.raises(ValueError, match="without wire_version"):
        tw.ServiceClient(base_url="http://127.0.0.1:1", client_config={"proto_compress_fwdbwd": True})
    with pytest.raises(ValueError, match="proto_compress_fwdbwd"):
        tw.ServiceClient(
            base_url="http://127.0.0.1:1", wire_version="0.38.0", client_config={"proto_compress_fwdbwd": "yes"}
        )


def test_encoded_request_decodes_to_same_request() -> None:
    """The server decodes the request that the client encoded."""
    request = m.ForwardBackwardRequest(
        forward_backward_input=m.ForwardBackwardInput(data=[datum()], loss_fn="cross_entropy"), model_id="m1", seq_id=3
    )
    assert decode_request(encode_request(request, "0.38.0")) == request


def test_text_selects_newer_loss_config_map(server: ScriptedServer) -> None:
    """For a range of versions, numbers are sent in the older map, and texts in the newer one."""
    server.rules["client/config"] = lambda _: CONFIG
    with open_client(server.url, wire_version=None) as client:
        training = client.create_lora_training_client("base", rank=8)
        training.forward_backward([datum()], "ppo", {"clip": 0.5}).result(TEST_TIMEOUT_S)
        training.forward_backward([datum()], "ppo", {"clip": 0.5, "mode": "x"}).result(TEST_TIMEOUT_S)
    numbers, texts = server.bodies("forward_backward")
    assert (numbers["loss_fn_config"], "loss_fn_config_v2" in numbers) == ({"clip": 0.5}, False)
    assert texts["loss_fn_config_v2"] == {"mode": {"text": "x"}, "clip": {"number": 0.5}}
