"""Mutations of sampling sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server.handlers import sampling as handlers
from tinkerwire._server.sessions.samplers import SamplingSessions

from . import patches
from .mutation import Group
from .sampling import change_sample_request, reject_samples

GROUP = Group("Sampling sessions")
NANO = "tinkerwire/byte-nano"


def _change_creation(change: Callable[[Any], Any]) -> None:
    def make(original: Any) -> Any:
        return lambda state, request: original(state, change(request))

    patches.replace_handler("create_sampling_session", make)


@GROUP.mutation(
    *("BAD-016", "BAD-017", "BAD-018", "BAD-019", "BAD-020", "BAD-021", "BAT-001", "CON-005", "LGP-001"),
    *("LGP-003", "RUN-011", "SPL-001", "SPL-002", "SPL-006", "SPL-008", "SPL-011", "SWT-001"),
)
def one_number_for_all_samplers() -> None:
    """Each sampling_session_seq_id of a session leads to the same sampling session."""
    _change_creation(
        lambda request: attrs.evolve(
            request,
            body=attrs.evolve(request.body, sampling_session_seq_id=0),
            key=None,
            fingerprint=b"x",
        )
    )


@GROUP.mutation("SPL-002")
def repeated_sampler_conflicts() -> None:
    """A create_sampling_session that is repeated is a conflict."""
    seen: set[Any] = set()

    def check(request: Any) -> Any:
        key = (request.body.session_id, request.body.sampling_session_seq_id)
        if key in seen:
            raise patches.error(409)
        seen.add(key)
        return request

    _change_creation(check)


@GROUP.mutation("SPL-003")
def unknown_base_sampled() -> None:
    """Sampling sessions on unknown base models sample from the smallest model."""
    patches.change_request_body(
        "create_sampling_session",
        lambda body: body.update(base_model=NANO) if "no-such" in str(body.get("base_model")) else None,
    )


@GROUP.mutation("SPL-004", "SPL-007", "SPL-010", "BAT-010", "RUN-012")
def unknown_sampler_is_first() -> None:
    """Unknown sampling sessions are replaced by the first one."""

    def make(_: Any) -> Any:
        def get(self: Any, sampler_id: str) -> Any:
            return self._sessions.get(sampler_id) or next(iter(self._sessions.values()))

        return get

    patches.replace(SamplingSessions, "get", make)


@GROUP.mutation("SPL-005", "RUN-011")
def sampler_of_another_base() -> None:
    """get_sampler names another base model."""
    patches.set_field("samplers/.*", base_model="other")


@GROUP.mutation("SPL-006", "RUN-011")
def sampler_without_path() -> None:
    """get_sampler has no model_path."""
    patches.set_field("samplers/.*", model_path=None)


@GROUP.mutation("BAT-008", "SPL-008")
def seq_ids_of_32_bits() -> None:
    """Asample rejects seq_ids beyond 32 bits."""
    reject_samples(lambda body: (body.seq_id or 0) >= 2**31)


@GROUP.mutation("SPL-009")
def copies_share_a_number() -> None:
    """Each copy of a client gets number 1."""
    patches.replace(
        handlers, "JoinSamplingSessionResponse", lambda original: lambda client_counter: original(client_counter=1)
    )


@GROUP.mutation("SPL-011")
def path_of_sample_ignored() -> None:
    """Samples with a model_path sample from the base model."""
    change_sample_request(
        lambda body: attrs.evolve(body, model_path=None, base_model=NANO) if body.model_path else body
    )
