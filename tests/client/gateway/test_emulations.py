"""Operations that the gateway answers itself, and features that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.gateway_clients import RUN, URL, Client, Upstreams, json_response, poll, value_of
from tinkerwire._gateway.memory import Memory
from tinkerwire._wire.codec import decode
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated import models
from tinkerwire_generated.protobuf import message_class

SAMPLE = {"prompt": {"chunks": []}, "sampling_params": {}, "sampling_session_id": "s", "seq_id": 0, "num_samples": 2}
PATH = "tinker://run/weights/a"
CREATE = {"session_id": "s1", "model_seq_id": 0, "path": PATH, "optimizer": False, "type": "load_weights"}


@pytest.mark.parametrize("version", ["0.18.2", "0.25.0", "0.38.0"])
def test_old_upstream_gets_flags_that_it_can_keep(upstream: Upstreams, version: str) -> None:
    client = Client(upstream, None)
    flags = value_of(client.post("client/config", {"sdk_version": version}, version))
    assert flags["pjwt_auth_enabled"] is False
    assert flags["parallel_fwdbwd_chunks"] is False
    assert flags.get("sample_use_retrieve_futures", False) is False
    assert flags.get("proto_compress_fwdbwd", False) is False
    assert flags.get("grpc_target") is None
    if version != "0.18.2":
        dynamic = value_of(client.post("client/dynamic_config", {"sdk_version": version}, version))
        assert dynamic["refresh_interval_sec"] == 300


def test_flags_of_the_upstream_pass_if_the_client_knows_them(upstream: Upstreams) -> None:
    """Flags that lead past the gateway do not pass."""
    upstream.answers["client/config"] = json_response(
        {"sample_max_concurrent_requests": 7, "pjwt_auth_enabled": True, "enable_grpc_retrieve_future": True, "new": 1}
    )
    flags = value_of(Client(upstream, None).post("client/config", {"sdk_version": "0.22.0"}, "0.21.0"))
    assert flags["pjwt_auth_enabled"] is True
    assert flags["enable_grpc_retrieve_future"] is False
    assert not {"new", "sample_max_concurrent_requests"} & flags.keys()
    flags = value_of(Client(upstream, None).post("client/config", {"sdk_version": "0.38.0"}, "0.38.0"))
    assert flags["sample_max_concurrent_requests"] == 7


def test_samples_get_sequence_ids_for_clients_that_require_them(upstream: Upstreams) -> None:
    upstream.answers["asample"] = json_response({"request_id": "r7"})
    client = Client(upstream)
    value = value_of(client.post("asample", SAMPLE, "0.38.0"))
    assert value == {"request_id": "r7", "sample_sequence_ids": ["r7:0", "r7:1"]}
    assert value_of(client.post("asample", SAMPLE, "0.16.1")) == {"request_id": "r7"}
    upstream.answers["asample"] = json_response({"request_id": "r7", "sample_sequence_ids": ["a", "b"]})
    assert value_of(client.post("asample", SAMPLE, "0.38.0"))["sample_sequence_ids"] == ["a", "b"]


@pytest.mark.parametrize(("version", "accept"), [("0.16.1", JSON), ("0.38.0", PROTOBUF)])
@pytest.mark.parametrize("values", [[-0.5], [None, -0.5], None])
def test_prompt_logprobs_have_one_value_for_each_token(
    upstream: Upstreams, version: str, accept: str, values: list[float | None] | None
) -> None:
    upstream.answers["asample"] = json_response({"request_id": "r7"})
    upstream.answers["retrieve_future"] = json_response({"sequences": [], "prompt_logprobs": values, "type": "sample"})
    client = Client(upstream)
    prompt = {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]}
    client.post("asample", {**SAMPLE, "prompt": prompt, "prompt_logprobs": True}, version)
    headers = {"X-Tinker-Request-Type": "Sample", "Accept": accept}
    response = client.post("retrieve_future", {"request_id": "r7"}, version, headers)
    found = (
        decode(response.content, models.SampleResponse).prompt_logprobs
        if accept == PROTOBUF
        else value_of(response)["prompt_logprobs"]
    )
    assert found == (None if values is None else [None, -0.5])


def test_upstream_without_get_sampler_is_described_from_memory(upstream: Upstreams) -> None:
    upstream.answers["create_sampling_session"] = json_response({"sampling_session_id": "s:sample:0"})
    upstream.answers["training_runs/run"] = json_response(RUN)
    client = Client(upstream, "0.4.1")
    body = {"session_id": "s", "sampling_session_seq_id": 0, "model_path": "tinker://run/sampler_weights/a"}
    assert client.post("create_sampling_session", body, "0.38.0").status == 200
    sampler = value_of(client.get("samplers/s:sample:0", "0.38.0"))
    assert (sampler["base_model"], sampler["model_path"]) == ("base", "tinker://run/sampler_weights/a")
    info = value_of(client.post("weights_info", {"tinker_path": PATH}, "0.38.0"))
    assert (info["base_model"], info["lora_rank"]) == ("base", 8)
    assert client.get("samplers/other", "0.38.0").status == 404


def test_renamed_listing_of_checkpoints(upstream: Upstreams) -> None:
    upstream.answers["models/m/checkpoints"] = upstream.answers["training_runs/m/checkpoints"] = json_response(
        {"checkpoints": []}
    )
    assert Client(upstream, "0.3.0").get("training_runs/m/checkpoints", "0.38.0").status == 200
    assert Client(upstream, "0.16.1").get("models/m/checkpoints", "0.3.0").status == 200
    assert [request.path for request in upstream.requests] == [
        "/api/v1/models/m/checkpoints",
        "/api/v1/training_runs/m/checkpoints",
    ]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("telemetry", {"events": [], "platform": "x", "sdk_version": "0.16.1", "session_id": "s"}, 200),
        ("session_heartbeat", {"session_id": "s"}, 200),
    ],
)
def test_optional_operations_are_accepted(upstream: Upstreams, path: str, body: Any, status: int) -> None:
    """An upstream without the endpoint is asked once."""
    client = Client(upstream)
    assert client.post(path, body, "0.16.1").status == status
    assert client.post(path, body, "0.16.1").status == status
    assert len(upstream.named(path)) == 1


def test_end_of_a_session_is_accepted(upstream: Upstreams) -> None:
    body = {"reason": {"type": "success"}, "detail": None}
    assert Client(upstream).post("sessions/s/finish", body, "0.38.0").status == 204


def test_lost_session_is_not_taken_for_a_missing_endpoint(upstream: Upstreams) -> None:
    upstream.answers["session_heartbeat"] = json_response({"detail": "session s is unknown"}, 404)
    assert Client(upstream).post("session_heartbeat", {"session_id": "s"}, "0.16.1").status == 404


def test_immediate_result_becomes_a_future(upstream: Upstreams) -> None:
    upstream.answers["optim_step"] = json_response({"metrics": {"x": 0.1}, "type": "optim_step"})
    client = Client(upstream)
    step = {"model_id": "m", "seq_id": 1, "adam_params": {}}
    request_id = value_of(client.post("optim_step", step, "0.16.1"))["request_id"]
    assert poll(client, request_id, "0.16.1", "OptimStep")["metrics"] == {"x": 0.1}


def test_future_in_place_of_a_value_is_polled(upstream: Upstreams) -> None:
    upstream.answers["create_sampling_session"] = json_response({"request_id": "r9", "status": "pending"})
    upstream.answers["retrieve_future"] = json_response({"sampling_session_id": "s:sample:0"})
    body = {"session_id": "s", "sampling_session_seq_id": 0, "base_model": "b"}
    value = value_of(Client(upstream).post("create_sampling_session", body, "0.16.1"))
    assert value["sampling_session_id"] == "s:sample:0"


@pytest.mark.parametrize(
    ("name", "body", "feature"),
    [
        ("save_weights", {"model_id": "m", "path": "a", "seq_id": 1, "overwrite": True}, "overwrite"),
        ("save_weights_for_sampler", {"model_id": "m", "seq_id": 1, "kind": "inflight"}, "kind"),
        ("asample", {**SAMPLE, "prompt_alt_tokens_k": 1}, "prompt_alt_tokens_k"),
        (
            "optim_step",
            {"model_id": "m", "seq_id": 1, "optimizer_params": {"type": "dimuon", "learning_rate": 0.1}},
            "",
        ),
        (
            "save_weights",
            {"model_id": "m", "path": "a", "seq_id": 1, "user_metadata": {"note": "best"}},
            "user_metadata",
        ),
        ("load_weights", {**CREATE, "weights_access_token": "secret-token"}, "weights_access_token"),
    ],
)
def test_features_that_the_upstream_lacks_are_refused(upstream: Upstreams, name: str, body: Any, feature: str) -> None:
    response = Client(upstream).post(name, body, "0.38.0")
    assert response.status == 400
    detail = value_of(response)["detail"]
    assert feature in detail
    assert f"the server at {URL} (wire 0.16.1)" in detail
    assert "secret-token" not in detail
    assert not upstream.named(name)


def test_operations_that_the_upstream_lacks_are_404(upstream: Upstreams) -> None:
    client = Client(upstream)
    for response in (
        client.post("save_weights_external", {"model_id": "m", "path": "a", "seq_id": 1}, "0.38.0"),
        client.get("audit", "0.38.0"),
    ):
        assert response.status == 404
        assert f"the server at {URL} (wire 0.16.1) has no" in value_of(response)["detail"]


def test_discovered_upstream_that_lacks_an_endpoint_is_named(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({})
    response = Client(upstream, None).get("audit", "0.38.0")
    assert response.status == 404
    assert "has no get_audit_log" in value_of(response)["detail"]


def test_strict_upstream_of_an_unknown_version_gets_what_it_knows(upstream: Upstreams) -> None:
    """Optimizer exists from 0.6.0 on, and the upstream may be older or newer."""

    def strict(request: WireRequest) -> WireResponse:
        has_optimizer = b"optimizer" in (request.content or b"")
        return json_response({"detail": "unknown field"}, 422) if has_optimizer else json_response({"request_id": "r"})

    upstream.answers["load_weights"] = strict
    client = Client(upstream, None)
    for _ in range(2):
        assert client.post("load_weights", {"model_id": "m", "path": PATH, "seq_id": 1}, "0.4.1").status == 200
    assert len(upstream.named("load_weights")) == 3


def test_spans_are_not_sent_to_an_upstream_without_them(upstream: Upstreams) -> None:
    upstream.answers["forward_backward"] = json_response({"request_id": "r"})
    message = message_class("ForwardBackwardRequest")(model_id="m", seq_id=1, loss_fn="cross_entropy")
    datum = message.data.add()
    datum.model_input.add().encoded_text.tokens = b"\x01\0\0\0"
    span = datum.model_input_spans.add().sampled_tokens
    span.sequence_id, span.offset, span.length = "q", 0, 1
    headers = {"Content-Type": PROTOBUF}
    assert Client(upstream).post("forward_backward", message.SerializeToString(), "0.38.0", headers).status == 200
    assert "model_input_spans" not in upstream.body("forward_backward")["forward_backward_input"]["data"][0]


@pytest.mark.parametrize("to_wire", ["0.16.1", None])
def test_name_of_a_session_is_kept_for_an_upstream_without_it(
    upstream: Upstreams, to_wire: str | None, tmp_path: Path
) -> None:
    upstream.answers["create_session"] = json_response({"session_id": "s", "type": "create_session"})
    upstream.answers["sessions/s"] = json_response({"training_run_ids": [], "sampler_ids": []})
    session = {"tags": [], "user_metadata": None, "sdk_version": "0.38.0", "display_name": "nightly"}
    client = Client(upstream, to_wire, memory=Memory(tmp_path / "state.sqlite"))
    assert client.post("create_session", session, "0.38.0").status == 200
    client.close()
    assert "display_name" not in upstream.body("create_session")
    later = Client(upstream, to_wire, memory=Memory(tmp_path / "state.sqlite"))
    assert value_of(later.get("sessions/s", "0.38.0"))["display_name"] == "nightly"
    assert "display_name" not in value_of(later.get("sessions/s", "0.30.4"))
    later.close()


def test_archive_address_is_absolute(upstream: Upstreams) -> None:
    upstream.answers["training_runs/r/checkpoints/weights/a/archive"] = WireResponse(
        status=302, headers={"location": "/archives/x.tar"}
    )
    response = Client(upstream).get("training_runs/r/checkpoints/weights/a/archive", "0.16.1")
    assert (response.status, response.headers["location"]) == (302, f"{URL}/archives/x.tar")


@pytest.mark.parametrize("name", ["client/config", "client/dynamic_config"])
def test_flags_need_a_valid_request_too(upstream: Upstreams, name: str) -> None:
    """The gateway answers for a server without flags, and rejects what a server with them rejects."""
    client = Client(upstream)
    assert client.post(name, b"{", "0.38.0").status == 422
    assert client.post(name, {"sdk_version": 1}, "0.38.0").status == 422
    assert client.post(name, {"sdk_version": "0.38.0"}, "0.38.0").status == 200
