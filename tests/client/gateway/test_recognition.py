"""Recognition of the wire version of clients."""

from __future__ import annotations

import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._gateway.recognition import UNKNOWN, recognize


@pytest.mark.parametrize(
    ("headers", "versions"),
    [
        ({"x-stainless-package-version": "0.16.1"}, ("0.16.1",)),
        ({"x-stainless-package-version": "0.12.5"}, ("0.12.0",)),
        ({"x-stainless-package-version": "0.18.0"}, ("0.18.2", "0.16.1")),
        ({"x-stainless-package-version": "0.26.1"}, ("0.26.2", "0.25.0")),
        ({"x-stainless-package-version": "0.6.2"}, ("0.6.3", "0.6.0")),
        ({"x-stainless-package-version": "0.38.1"}, ("0.38.0",)),
        ({"x-stainless-package-version": "0.24.1rc1"}, ("0.24.1",)),
        ({"x-stainless-package-version": "1.0.0"}, ("0.38.0",)),
        ({"x-sdk-version": "0.38.0"}, ("0.38.0",)),
        ({"user-agent": "AsyncTinker/Python 0.7.0"}, ("0.7.0",)),
        ({"x-tinkerwire-wire": "0.4.1"}, ("0.4.1",)),
        ({"x-tinkerwire-wire": "0.18.2-0.38.0"}, ("0.38.0", "0.24.1")),
        ({"x-tinkerwire-wire": "0.3.0-0.16.1"}, ("0.16.1",)),
    ],
)
def test_headers_name_the_version(headers: dict[str, str], versions: tuple[str, ...]) -> None:
    client = recognize(headers)
    assert client.versions == versions
    assert client.is_known


@pytest.mark.parametrize("headers", [{}, {"user-agent": "curl/8"}, {"x-stainless-package-version": "unknown"}])
def test_other_clients_are_unknown(headers: dict[str, str]) -> None:
    assert recognize(headers) == UNKNOWN


def test_versions_before_the_models_are_rejected(upstream: Upstreams) -> None:
    response = Client(upstream).post("create_session", {}, "0.2.0")
    assert response.status == 400
    assert "0.3.0 or newer, got 0.2.0" in value_of(response)["detail"]
    assert not upstream.requests


def test_unknown_client_is_recognized_by_the_form_of_its_request(upstream: Upstreams) -> None:
    """A JSON forward_backward exists before 0.25.0 only, and a field of 0.33.1 from then on only."""
    upstream.answers["forward"] = upstream.answers["asample"] = json_response({"request_id": "r1"})
    client = Client(upstream)
    datum = {"model_input": {"chunks": [{"tokens": [1]}]}, "loss_fn_inputs": {}}
    body = {"model_id": "m", "seq_id": 1, "forward_input": {"data": [datum], "loss_fn": "cross_entropy"}}
    assert client.post("forward", body).status == 200
    sample = {"prompt": {"chunks": []}, "sampling_params": {}, "sampling_session_id": "s", "seq_id": 0}
    response = client.post("asample", {**sample, "prompt_logprobs_last_n": 1})
    assert response.status == 400
    assert "prompt_logprobs_last_n" in value_of(response)["detail"]


def test_unknown_client_gets_the_error_of_a_version_that_has_the_operation(upstream: Upstreams) -> None:
    """Versions from 0.26.2 on have no unload_model; the path of an invalid request is not unknown."""
    client = Client(upstream)
    response = client.post("unload_model", {})
    assert response.status == 422
    assert value_of(response)["detail"][0]["loc"] == ["body", "model_id"]
    assert client.post("nowhere", {}).status == 404


@pytest.mark.parametrize("body", [b"", b"null", b"{", b"{}", b"\xff"])
def test_unknown_client_gets_the_error_of_a_version_that_takes_its_form(upstream: Upstreams, body: bytes) -> None:
    """Batches of the newest version are protobuf; the content of this one is wrong, not its type."""
    response = Client(upstream).post("forward_backward", body)
    assert response.status == 422
    assert value_of(response)["detail"][0]["loc"][0] == "body"
    text = Client(upstream).post("forward_backward", body, headers={"Content-Type": "text/plain"})
    assert text.status == 415


def test_unknown_client_is_remembered_by_the_sdk_version_of_its_session(upstream: Upstreams) -> None:
    upstream.answers["create_session"] = json_response({"session_id": "s1"})
    client = Client(upstream)
    session = {"tags": [], "user_metadata": None, "sdk_version": "0.4.1"}
    assert client.post("create_session", session).status == 200
    # Version 0.4.1 has no weight_decay; the newest version, which would be tried first, has no problem with the field.
    upstream.answers["create_sampling_session"] = json_response({"sampling_session_id": "sampler"})
    body = {"session_id": "s1", "sampling_session_seq_id": 0, "base_model": "b"}
    assert client.post("create_sampling_session", body).status == 200
    sample = {"prompt": {"chunks": []}, "sampling_params": {}, "sampling_session_id": "sampler", "seq_id": 0}
    response = client.post("asample", {**sample, "topk_sample_logprobs": 1})
    assert response.status == 422
    assert value_of(response)["detail"][0]["loc"] == ["body", "topk_sample_logprobs"]


def test_release_between_two_versions_may_use_what_either_has(upstream: Upstreams) -> None:
    """The contract has 0.18.2, but not 0.18.0, which requests client/config as 0.18.2 does; and 0.16.1 does not."""
    client = Client(upstream)
    assert client.post("client/config", {"sdk_version": "0.18.0"}, "0.18.0").status == 200
    assert client.post("client/config", {"sdk_version": "0.16.1"}, "0.16.1").status == 404
    upstream.answers["asample"] = json_response({"request_id": "r1"})
    sample = {"prompt": {"chunks": []}, "sampling_params": {}, "sampling_session_id": "s", "seq_id": 0}
    # Versions from 0.26.2 on number the sequences.
    assert value_of(client.post("asample", sample, "0.26.0"))["sample_sequence_ids"] == ["r1:0"]
    # An operation of 0.25.0 that 0.26.2 lacks.
    upstream.answers["unload_model"] = json_response({"request_id": "r2"})
    assert client.post("unload_model", {"model_id": "m"}, "0.26.0").status == 200
    assert client.post("unload_model", {"model_id": "m", "other": 1}, "0.26.0").status == 422


def test_speak_overrides_headers(upstream: Upstreams) -> None:
    upstream.answers["load_weights"] = json_response({"request_id": "r"})
    client = Client(upstream, speak="0.4.1")
    assert client.post("load_weights", {"model_id": "m", "path": "tinker://a/weights/b"}, "0.38.0").status == 200
    assert upstream.body("load_weights")["optimizer"] is False
