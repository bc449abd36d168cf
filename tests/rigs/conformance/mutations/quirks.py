"""The quirks of ``tinkerwire serve --quirks``, each value alone."""

from __future__ import annotations

from .mutation import WIRE, Group

GROUP = Group("Quirks")


def _add(quirks: str, change: str, *trips: str, wire: str = WIRE, unseen: str = "") -> None:
    name = "quirk-" + quirks.replace("=", "-").replace(",", "-").replace("_", "-").replace(".", "-")
    GROUP.add(name, change, lambda: None, *trips, wire=wire, unseen=unseen, quirks=quirks)


OPTIONAL = (
    *("SRV-006", "SRV-021", "SRV-023", "SRV-024", "SRV-026", "SRV-027", "SRV-028", "SRV-029", "SRV-030", "SRV-031"),
    *("SRV-032", "SRV-035", "SRV-037"),
)
NO_PROTOBUF = ("TRN-001", "TRN-003", "FUT-001")
"""Requirements that fail if each batch is rejected, whatever the status."""
UNSEEN_FAILURE = (
    *("TRN-044", "TRN-045", "TRN-046", "LOS-043", "LOS-044", "LOS-045", "LOS-046", "SMP-026", "SMP-028", "SMP-099"),
    *("FUT-010", "BAT-012", "WGT-008", "WGT-019", "WGT-021", "WGT-023", "BAD-018"),
)
"""Requirements that fail if clients do not take the failure of work for one."""

_add("result_delay_s=0.02", "Each result is ready 20 ms after its first poll.", unseen="a poll may be held for seconds")
_add(
    "not_ready=try_again",
    "A poll before the result is ready is answered with 200 and try_again.",
    unseen="the contract has both forms, and all clients take both",
)
_add(
    "failure=detail",
    "A failure has a detail in place of an error.",
    *UNSEEN_FAILURE,
)
_add("failure=object", "The error of a failure is an object.", "FUT-010")
_add("failure=category", "The category of a failure is unknown.", "FUT-011")
for _status in ("400", "404", "409", "422"):
    _add(f"failure={_status}", f"A failure is answered with {_status}.", "FUT-010")
# A client polls again after a 500, so that the failure never ends its wait; valid requests may fail, too.
_add("failure=500", "A failure is answered with 500.", *UNSEEN_FAILURE, "BAD-017")
# Requirements on other operations with batches are blocked.
_add("batches=json", "Batches are accepted as JSON only.", *NO_PROTOBUF)
_add("batches=protobuf", "Batches are accepted as protobuf only.", *NO_PROTOBUF, wire="0.24.1")
for _status in ("400", "404", "405", "406", "422", "500", "501", "502"):
    _add(
        f"batches=json,rejection={_status}",
        f"Batches are accepted as JSON only, and others rejected with {_status}.",
        *NO_PROTOBUF,
    )
_add(
    "batches=json,rejection=dropped",
    "Batches are accepted as JSON only, and the connections of others are dropped.",
    *NO_PROTOBUF,
)
_add("executes_rejected", "The first batch is executed, and rejected then.", "ORD-015")
_add("flags=absent", "client/config has no flags.", unseen="each flag has a default in the contract")
_add(
    "results=protobuf",
    "Results of batches and samples are protobuf, whatever the poll accepts.",
    "PRO-044",
    wire="0.24.1",
)
_add(
    "results=json",
    "Results of batches and samples are JSON, whatever the poll accepts.",
    *("TRN-001", "TRN-003", "SMP-001", "FUT-001", "PRO-043"),
)
_add("missing=optional", "Optional operations do not exist.", *OPTIONAL)
_add("missing=optional,missing_status=405", "Optional operations are answered with 405.", *OPTIONAL)
_add("short_paths", "save_weights_for_sampler ends with tinker://MODEL/NAME.", "WGT-006", "CKP-021", "RUN-011")
_add("prompt_logprobs=short", "The logprobs of a prompt have no null in the first place.", "LGP-002")
_add("prompt_logprobs=absent", "The logprobs of a prompt are null.", "LGP-002", "LGP-003")
_add("topk=ignored", "Top-k logprobs are null.", "LGP-005", "LGP-008")
_add("topk=rejected", "Requests for top-k logprobs are rejected with 400.", "LGP-005", "LGP-008")
_add(
    "expected_tokens=terse",
    "The rejection of an image does not name its chunk.",
    unseen="the contract leaves the texts of errors open",
)
_add(
    "expected_tokens=ignored",
    "An image may have another number of tokens than expected.",
    unseen="the contract leaves open whether a server checks the number",
)
_add("metrics=empty", "Batches and steps have no metrics.", "TRN-009")
_add("metrics=null", "The metrics of batches and steps are null.", "TRN-001", "TRN-003", "FUT-001", wire="0.16.1")
_add("load_first", "load_weights is rejected unless it is the first operation of its model.", "WGT-016")
_add("counts_rejected", "A rejected operation consumes its seq_id.", "TRN-043", "PRO-066", "BAD-021")
for _form in ("integer", "uuid", "prefixed"):
    _add(f"ids={_form}", f"The ids of futures have the form {_form}.", unseen="a request_id is any text")
