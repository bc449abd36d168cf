"""Graphs of custom losses in request form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def node(op: str, name: str, target: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return one node of a graph."""
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs}


def ref(name: str) -> dict[str, str]:
    """Return a reference to the output of another node."""
    return {"ref": name}


def body(
    *steps: dict[str, Any], inputs: Sequence[tuple[str, int]] = (("logprobs", 1),), **fields: Any
) -> dict[str, Any]:
    """Return a request whose last node is the loss."""
    places = [node("placeholder", name, name) for name, _ in inputs]
    last = steps[-1]["name"] if steps else "logprobs"
    output = node("output", "output", "output", {"tuple": [ref(last), {"dict": {}}]})
    return {
        "session_id": "s",
        "custom_loss_seq_id": 0,
        "name": "mine",
        "inputs": [{"name": name, "rank": rank} for name, rank in inputs],
        "graph": {"format": 1, "nodes": [*places, *steps, output]},
        **fields,
    }
