"""Flow of every Python client: open a session, create a model, save its weights, and list its run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol


class Client(Protocol):
    """Calls of the flow; the two polls return None while the result is not ready."""

    def create_session(self, version: str) -> str: ...
    def first_model(self) -> str: ...
    def create_model(self, session_id: str, base_model: str) -> str: ...
    def retrieve_model_id(self, request_id: str) -> str | None: ...
    def get_info(self, model_id: str) -> str: ...
    def save_weights(self, model_id: str) -> str: ...
    def retrieve_path(self, request_id: str) -> str | None: ...
    def open_sampler(self, session_id: str, base_model: str) -> str: ...
    def sample(self, sampling_session_id: str) -> str: ...
    def list_runs(self) -> list[str]: ...


def run(client: Client, version: str) -> None:
    """Run the flow and print the number of calls."""
    session_id = client.create_session(version)
    base_model = client.first_model()
    request_id = client.create_model(session_id, base_model)
    model_id = wait(lambda: client.retrieve_model_id(request_id))
    assert client.get_info(model_id) == model_id
    saved = client.save_weights(model_id)
    assert wait(lambda: client.retrieve_path(saved)) == f"tinker://{model_id}/weights/a"
    assert client.sample(client.open_sampler(session_id, base_model))
    assert model_id in client.list_runs()
    print("10 calls")  # noqa: T201


def wait(poll: Callable[[], Any]) -> Any:
    """Return the result of a poll that has one."""
    for _ in range(100):
        result = poll()
        if result is not None:
            return result
        time.sleep(0.1)
    raise TimeoutError("no result after 100 polls")


def contains(read: Any, sent: Any) -> bool:
    """Return whether a value that was read has everything that was sent; defaults may be added."""
    if isinstance(sent, dict):
        return isinstance(read, dict) and all(name in read and contains(read[name], sent[name]) for name in sent)
    if isinstance(sent, list):
        return isinstance(read, list) and len(read) == len(sent) and all(map(contains, read, sent))
    return bool(read == sent)
