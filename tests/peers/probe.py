"""What the peer server answers to requests at the edge of the contract: `python -m tests.peers.probe`.

Writes a table to docs/compatibility.md: which spellings of a request it takes, how it refuses, what a future says.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from typing import Any

from tests.official.report import DOCS, write_section
from tests.peers.skyrl_tx import BASE_MODEL, NAME, skyrl_tx

ANSWER_CHARACTERS = 240
PATIENCE_S = 30
Answer = tuple[int, Any]  # status, or 0 for none; decoded body
DATUM = {
    "model_input": {"chunks": [{"tokens": [70, 71, 72]}]},
    "loss_fn_inputs": {
        "target_tokens": {"data": [71, 72, 73], "dtype": "int64", "shape": [3]},
        "weights": {"data": [1.0, 1.0, 1.0], "dtype": "float32", "shape": [3]},
    },
}
TAGGED = DATUM | {"model_input": {"chunks": [{"type": "encoded_text", "tokens": [70, 71, 72]}]}}
NULL_SHAPE = {
    "model_input": DATUM["model_input"],
    "loss_fn_inputs": {
        name: {"data": tensor["data"], "dtype": tensor["dtype"], "shape": None}
        for name, tensor in DATUM["loss_fn_inputs"].items()
    },
}
OUTSIDE = {
    "model_input": {"chunks": [{"tokens": [70, 9999, 72]}]},
    "loss_fn_inputs": DATUM["loss_fn_inputs"],
}


class Probe:
    """One run of requests against one server, each noted with its answer."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.lines: list[tuple[str, str, str]] = []

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """Send one request and return status and answer."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base_url}/api/v1/{path}", data=data, method=method)
        request.add_header("content-type", content_type)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        except TimeoutError:
            return 0, f"no answer within {PATIENCE_S} s"
        try:
            decoded = json.loads(content)
        except ValueError:
            decoded = content.decode(errors="replace")
        return status, decoded

    def note(self, what: str, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request, note what came back under the name `what`, and return the answer."""
        status, answer = self.send(method, path, body, **options)
        self._line(what, f"{method} {path}", status, answer)
        return answer

    def future(self, what: str, path: str, body: Any) -> Any:
        """Like `note`, and when the answer is a future, note its result instead."""
        status, answer = self.send("POST", path, body)
        if status != 200:
            self._line(what, f"POST {path}", status, answer)
            return answer
        status, result = self.send("POST", "retrieve_future", {"request_id": answer["request_id"]})
        self._line(what, f"POST {path}, retrieve_future", status, result)
        return result

    def _line(self, what: str, request: str, status: int, answer: Any) -> None:
        text = re.sub(r"\b(model|sampling|session)_[0-9a-f]{6,}\b", r"\1_ID", json.dumps(answer))
        text = re.sub(r'"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?"', r'"TIME\1"', text)
        text = text.replace("|", "/").replace("`", "'")
        text = text if len(text) <= ANSWER_CHARACTERS else text[:ANSWER_CHARACTERS] + "..."
        self.lines.append((what, re.sub(r"model_[0-9a-f]+", "model_ID", request), f"{status or chr(0x2013)} `{text}`"))

    def table(self) -> str:
        """Return the Markdown table of all that was noted."""
        rows = "".join(f"| {what} | {request} | {answer} |\n" for what, request, answer in self.lines)
        return f"| what | request | status and answer |\n|---|---|---|\n{rows}"


def probe(base_url: str) -> str:
    """Send all requests and return the table."""
    p = Probe(base_url)
    session = _sessions(p)
    model = _models(p, session)
    _training(p, model)
    _weights(p, model)
    _sampling(p, session)
    _futures(p)
    _poison(p, model)
    return p.table()


def _sessions(p: Probe) -> str:
    body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    p.note("create_session without type, null metadata", "POST", "create_session", body)
    p.note("create_session with an unknown field", "POST", "create_session", body | {"display_name": "x"})
    p.note("create_session without tags", "POST", "create_session", {"sdk_version": "0.16.1"})
    session = p.note("create_session with type", "POST", "create_session", body | {"type": "create_session"})
    session_id: str = session["session_id"]
    p.note("heartbeat", "POST", "session_heartbeat", {"session_id": session_id, "type": "session_heartbeat"})
    p.note("heartbeat of an unknown session", "POST", "session_heartbeat", {"session_id": "no-such"})
    p.note("client/config", "POST", "client/config", {"sdk_version": "0.16.1"})
    p.note("capabilities", "GET", "get_server_capabilities")
    p.note("wrong method", "GET", "create_session")
    p.note("a body that is no JSON", "POST", "create_session", b"{")
    p.note("a protobuf body", "POST", "forward_backward", b"\x08\x01", content_type="application/x-protobuf")
    event = {
        "event": "SESSION_START",
        "event_id": "e",
        "event_session_index": 0,
        "severity": "INFO",
        "timestamp": "2026-01-01T00:00:00+00:00",
    }
    batch = {"events": [event], "platform": "Linux", "sdk_version": "0.16.1", "session_id": session_id}
    p.note("telemetry", "POST", "telemetry", batch)
    return session_id


def _models(p: Probe, session: str) -> str:
    body = {
        "session_id": session,
        "model_seq_id": 0,
        "base_model": BASE_MODEL,
        "user_metadata": None,
        "lora_config": {"rank": 8, "seed": None, "train_unembed": True, "train_mlp": True, "train_attn": True},
    }
    created = p.note("create_model", "POST", "create_model", body)
    again = p.note("create_model again, same model_seq_id", "POST", "create_model", body)
    p.note("create_model without lora_config", "POST", "create_model", body | {"lora_config": None})
    p.future("create_model of rank 64 (the server allows 8)", "create_model", _rank(body, 64))
    for answer in (created, again):
        p.send("POST", "retrieve_future", {"request_id": answer["request_id"]})
    model: str = created["model_id"]
    p.note("get_info", "POST", "get_info", {"model_id": model, "type": "get_info"})
    p.note("get_info of an unknown model", "POST", "get_info", {"model_id": "no-such"})
    p.future("result of create_model", "create_model", body | {"model_seq_id": 1})
    p.note("training run", "GET", f"training_runs/{model}")
    p.note("unload of the second model", "POST", "unload_model", {"model_id": again["model_id"]})
    return model


def _rank(body: dict[str, Any], rank: int) -> dict[str, Any]:
    return body | {"lora_config": body["lora_config"] | {"rank": rank}}


def _training(p: Probe, model: str) -> None:
    def request(datum: Any, **more: Any) -> dict[str, Any]:
        return _forward_backward(model, datum) | more

    p.future("forward_backward", "forward_backward", request(DATUM, seq_id=1))
    p.future("forward_backward, the same seq_id again", "forward_backward", request(DATUM, seq_id=1))
    p.future("forward_backward, a gap in seq_id", "forward_backward", request(DATUM, seq_id=9))
    p.future("forward_backward without seq_id, tagged chunks", "forward_backward", request(TAGGED))
    p.future("forward_backward, null shapes", "forward_backward", request(NULL_SHAPE, seq_id=10))
    p.future("forward_backward, an unknown field", "forward_backward", request(DATUM, seq_id=11, newer=1))
    p.future("forward_backward, no datums", "forward_backward", _no_datums(request(DATUM, seq_id=12)))
    adam = {"learning_rate": 0.001}
    p.future("optim_step, one Adam field", "optim_step", {"model_id": model, "adam_params": adam, "seq_id": 15})
    full = adam | {"beta1": 0.9, "beta2": 0.95, "eps": 1e-12, "weight_decay": 0.0, "grad_clip_norm": 0.0}
    body = {"model_id": model, "adam_params": full, "seq_id": 16, "type": "optim_step"}
    p.future("optim_step, all Adam fields and type", "optim_step", body)
    p.future("optim_step with no gradients since the last", "optim_step", body | {"seq_id": 17})
    p.note("optim_step of an unknown model", "POST", "optim_step", body | {"model_id": "no-such"})


def _forward_backward(model: str, datum: Any) -> dict[str, Any]:
    data = {"data": [datum], "loss_fn": "cross_entropy", "loss_fn_config": None}
    return {"model_id": model, "forward_backward_input": data}


def _no_datums(request: dict[str, Any]) -> dict[str, Any]:
    return request | {"forward_backward_input": request["forward_backward_input"] | {"data": []}}


def _weights(p: Probe, model: str) -> None:
    p.future("save_weights", "save_weights", {"model_id": model, "path": "one", "seq_id": 20})
    p.future("save_weights under the same name", "save_weights", {"model_id": model, "path": "one"})
    p.note("save_weights without a name", "POST", "save_weights", {"model_id": model, "seq_id": 21})
    p.note("save_weights, a slash in the name", "POST", "save_weights", {"model_id": model, "path": "a/b"})
    load = {"model_id": model, "path": f"tinker://{model}/weights/one", "optimizer": True}
    p.future("load_weights with optimizer", "load_weights", load)
    p.future("load_weights without optimizer", "load_weights", load | {"optimizer": False})
    p.note("load_weights, a path of another form", "POST", "load_weights", load | {"path": "one"})
    save = {"model_id": model, "path": "two", "seq_id": 22}
    p.future("save_weights_for_sampler with a name", "save_weights_for_sampler", save)
    unnamed = {"model_id": model, "sampling_session_seq_id": 5, "seq_id": 23}
    p.future("save_weights_for_sampler without a name", "save_weights_for_sampler", unnamed)
    p.note("checkpoints of the run", "GET", f"training_runs/{model}/checkpoints")
    p.note("weights_info", "POST", "weights_info", {"tinker_path": f"tinker://{model}/weights/one"})
    sampler = {"tinker_path": f"tinker://{model}/sampler_weights/two"}
    p.note("weights_info of sampler weights", "POST", "weights_info", sampler)
    p.note("archive, as the SDK asks", "GET", f"training_runs/{model}/checkpoints/sampler_weights/two/archive")


def _sampling(p: Probe, session: str) -> None:
    create = {"session_id": session, "sampling_session_seq_id": 0, "base_model": BASE_MODEL}
    created = p.note("create_sampling_session", "POST", "create_sampling_session", create)
    body = {
        "sampling_session_id": created["sampling_session_id"],
        "seq_id": 0,
        "num_samples": 1,
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": [70, 71, 72]}]},
        "sampling_params": {"max_tokens": 2},
    }
    p.future("asample, tagged chunks", "asample", body)
    p.future("asample, the same seq_id again", "asample", body)
    p.future("asample with prompt logprobs", "asample", body | {"seq_id": 1, "prompt_logprobs": True})
    p.future("asample without max_tokens", "asample", body | {"seq_id": 2, "sampling_params": {}})
    one = {"max_tokens": 2, "stop": [72], "temperature": None}
    p.future("asample, temperature null", "asample", body | {"seq_id": 3, "sampling_params": one})
    empty = {"prompt": {"chunks": [{"tokens": []}]}}
    p.future("asample, empty prompt", "asample", body | {"seq_id": 4} | empty)
    beyond = {"prompt": {"chunks": [{"tokens": [70, 9999]}]}}
    p.future("asample, a token outside the vocabulary", "asample", body | {"seq_id": 5} | beyond)
    image = {"type": "image", "data": "AA==", "format": "png", "height": 1, "width": 1, "tokens": 1}
    p.future("asample, an image chunk", "asample", body | {"seq_id": 6, "prompt": {"chunks": [image]}})
    unknown = {"sampling_session_id": "no-such"}
    p.note("asample, unknown sampling session", "POST", "asample", body | unknown)


def _futures(p: Probe) -> None:
    p.note("unknown future", "POST", "retrieve_future", {"request_id": "999999"})
    p.note("a future id that is no number", "POST", "retrieve_future", {"request_id": "no-such"})
    body = {"request_id": "1", "allow_metadata_only": True}
    p.note("an old future once more, with allow_metadata_only", "POST", "retrieve_future", body)
    p.note("a path that does not exist", "GET", "sessions")


def _poison(p: Probe, model: str) -> None:
    """Last, because nothing that is not a number ever leaves this server again."""
    optim = {"model_id": model, "adam_params": {"learning_rate": 0.001}}
    p.future("forward_backward, a token outside the vocabulary", "forward_backward", _forward_backward(model, OUTSIDE))
    p.future("optim_step on those gradients", "optim_step", optim)
    p.future("forward_backward after that", "forward_backward", _forward_backward(model, DATUM))
    p.future("unload_model", "unload_model", {"model_id": model, "type": "unload_model"})
    p.note("forward after unload_model", "POST", "forward", {"model_id": model, "forward_input": {}})


def main() -> None:
    """Probe and write the table."""
    with skyrl_tx() as url:
        text = probe(url)
    intro = f"## {NAME} on the wire\n\nMade by `python -m tests.peers.probe`; ids and times are replaced.\n\n"
    write_section(DOCS / "compatibility.md", f"{NAME} on the wire", intro + text, title="Compatibility")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
