"""Mutations of futures and their polls."""

from __future__ import annotations

import asyncio
from typing import Any

from tinkerwire._server.futures.store import FutureStore
from tinkerwire._server.handlers import futures as handlers
from tinkerwire._server.handlers import sampling, submission

from . import patches
from .mutation import Group

GROUP = Group("Futures")
SHORT_POLL = {"long_poll_s": 0.05}
POLL = "retrieve_future"


def _is_unready(_: Any, response: Any) -> bool:
    return response.status == 408


def _change_unready(**values: Any) -> None:
    patches.replace(handlers, "TryAgainResponse", lambda original: lambda **fields: original(**{**fields, **values}))


@GROUP.mutation(
    *("BAT-006", "CON-001", "FUT-003", "FUT-004", "LOS-001", "ORD-005", "ORD-022", "RUN-014", "SMP-017"),
    *("SMP-027", "TRN-040", "TRN-041", "WGT-014"),
    **SHORT_POLL,
)
def unready_is_503() -> None:
    """A poll before the result is ready is answered with 503."""
    patches.respond(POLL, 503, when=_is_unready)


@GROUP.mutation("BAT-006", "FUT-005", **SHORT_POLL)
def polls_not_held() -> None:
    """A poll is held for 0.05 s only."""


@GROUP.mutation("BAT-006", "FUT-005", "FUT-016", **SHORT_POLL)
def queue_state_unknown() -> None:
    """The queue_state of work that runs is ``busy``."""
    _change_unready(queue_state="busy")


@GROUP.mutation("BAT-006", "FUT-005", "FUT-017", **SHORT_POLL)
def unready_has_another_id() -> None:
    """The response to a poll for work that runs has another request_id."""
    _change_unready(request_id="other")


@GROUP.mutation("FUT-006", "FUT-007", "FUT-012", "FUT-013", "MOD-014", "ORD-010", "PRO-008")
def results_fetched_once() -> None:
    """A result can be fetched once, and is gone then."""
    fetched: set[bytes] = set()

    def is_gone(request: Any, response: Any) -> bool:
        known = request.content in fetched
        if response.status == 200 and b'"error"' not in response.content:
            fetched.add(request.content)
        return known

    patches.respond(POLL, 410, when=is_gone)


@GROUP.mutation("FUT-015")
def failures_fetched_once() -> None:
    """A failure can be fetched once, and is gone then."""
    fetched: set[bytes] = set()

    def is_gone(request: Any, response: Any) -> bool:
        known = request.content in fetched
        if response.status == 200 and b'"error"' in response.content:
            fetched.add(request.content)
        return known

    patches.respond(POLL, 410, when=is_gone)


@GROUP.mutation("BAD-019", "FUT-008")
def unknown_future_crashes() -> None:
    """A poll for an unknown request_id is answered with 500."""
    patches.respond(POLL, 500, when=lambda _, response: response.status == 404)


@GROUP.mutation("FUT-009")
def unknown_future_is_400() -> None:
    """A poll for an unknown request_id is answered with 400."""
    patches.respond(POLL, 400, when=lambda _, response: response.status == 404)


@GROUP.mutation("FUT-013")
def poll_headers_required() -> None:
    """A poll without X-Tinker-Request-Iteration is rejected."""
    patches.respond(POLL, 400, when=lambda request, _: "x-tinker-request-iteration" not in request.headers)


@GROUP.mutation(
    *("BAT-013", "CON-001", "CON-002", "CON-005", "CON-006", "CON-010", "FUT-008", "FUT-018", "FUT-021"),
    *("MOD-005", "ORD-001", "WGT-012"),
)
def newest_result_returned() -> None:
    """Each poll returns the newest result."""
    last: list[str] = []

    def submit(original: Any) -> Any:
        def submit(self: Any, *args: Any, **settings: Any) -> Any:
            last.append(original(self, *args, **settings))
            return last[-1]

        return submit

    patches.replace(FutureStore, "submit", submit)
    patches.replace(FutureStore, "get", lambda original: lambda self, request_id: original(self, last[-1]))


@GROUP.mutation("FUT-020")
def future_of_another_model() -> None:
    """The model_id of each future is that of another model."""
    patches.replace(
        submission,
        "queue_response",
        lambda original: lambda request_id, model_id=None, num_samples=None: original(request_id, "other", num_samples),
    )


@GROUP.mutation(
    *("BAT-001", "CON-002", "CON-005", "CON-010", "FUT-021", "LGP-001", "LGP-002", "LGP-003", "LGP-005"),
    *("LGP-008", "PRO-023", "SMP-005", "SMP-006", "SMP-010", "SMP-011", "SMP-012", "SMP-014", "SMP-016"),
    *("SMP-021", "SMP-028", "SMP-099", "WGT-004"),
)
def samples_share_an_id() -> None:
    """All samples have the request_id of the first."""
    first: list[str] = []

    def make(original: Any) -> Any:
        def queue_response(request_id: str, num_samples: Any = None) -> Any:
            first.append(request_id)
            return original(first[0], num_samples=num_samples)

        return queue_response

    patches.replace(sampling, "queue_response", make)


@GROUP.mutation("FUT-012")
def metadata_only_is_final() -> None:
    """A poll with allow_metadata_only is answered without the result and without its size."""
    patches.respond(POLL, 200, b"{}", when=patches.contains(b'"allow_metadata_only":true'))


@GROUP.mutation(
    *("BAD-017", "CON-001", "FUT-001", "ORD-023", "TRN-001", "TRN-010", "TRN-012", "TRN-045", "TRN-046"),
    wire="0.16.1",
)
def request_id_is_number() -> None:
    """The request_id of a forward_backward is a number."""
    patches.set_field("forward_backward", request_id=17)


@GROUP.mutation("FUT-007")
def one_poll_at_a_time() -> None:
    """A second poll for a result, while one is open, is rejected with 409."""
    open_polls: set[bytes] = set()

    async def handle(request: Any, go_on: Any) -> Any:
        if not patches.matches(POLL, request):
            return await go_on(request)
        if request.content in open_polls:
            return patches.rejection(409)
        open_polls.add(request.content)
        try:
            # Other requests arrive in the meantime.
            await asyncio.sleep(0.001)
            return await go_on(request)
        finally:
            open_polls.discard(request.content)

    patches.around(handle)


@GROUP.mutation("FUT-002", "FUT-014", "TRN-002", "TRN-004", "TRN-008", "TRN-009")
def operations_share_an_id() -> None:
    """Each optim_step has the request_id of the first operation of its model."""
    first: dict[str, str] = {}

    def change(body: dict[str, Any]) -> None:
        body["request_id"] = first.setdefault(str(body.get("model_id")), body["request_id"])

    patches.change_body("forward_backward|optim_step", change)


@GROUP.mutation(
    *("CON-001", "CON-007", "FUT-018", "FUT-019", "FUT-020", "FUT-021", "ORD-002", "ORD-003", "PRO-045"),
)
def operations_wait_for_polls() -> None:
    """An operation runs only after the results of the operations before it were fetched."""
    given: list[tuple[str, str]] = []
    fetched: set[str] = set()

    def remember(body: dict[str, Any]) -> None:
        if body.get("model_id"):
            given.append((body["model_id"], body["request_id"]))

    async def handle(request: Any, go_on: Any) -> Any:
        if not patches.matches(POLL, request):
            return await go_on(request)
        request_id = str((patches.read(request.content) or {}).get("request_id"))
        model = next((model for model, number in given if number == request_id), None)
        earlier = [number for name, number in given if name == model]
        earlier = earlier[: earlier.index(request_id)] if request_id in earlier else []
        if not fetched.issuperset(earlier):
            await asyncio.sleep(0.05)
            return patches.rejection(408)
        response = await go_on(request)
        fetched.add(request_id)
        return response

    patches.around(handle)
    patches.change_body("forward|forward_backward|optim_step", remember)
