"""Injected errors, drops and delays, each alone. The kit makes a single attempt, so that each of them is visible."""

from __future__ import annotations

from collections.abc import Callable

from tinkerwire.local import FaultInjection

from .mutation import Group

GROUP = Group("Injected failures")


def _add_probable(name: str, faults: str, change: str, *trips: str, unseen: str = "") -> None:
    GROUP.add(f"injected-{name}", change, lambda: None, *trips, unseen=unseen, fault_injection=faults)


def _add_planned(name: str, plan: Callable[[FaultInjection], None], change: str, *trips: str, unseen: str = "") -> None:
    GROUP.add(f"injected-{name}", change, lambda: None, *trips, unseen=unseen, planned=plan)


_add_probable("delay", "delay_s=0.005", "Each request is answered 5 ms later.", unseen="responses may take longer")
_add_probable(
    "5xx",
    "p_5xx=1.0,only=get_info",
    "get_info is answered with 500 to 504.",
    "MOD-002",
    "WGT-015",
    "BAD-017",
    "BAD-021",
)
_add_probable(
    "429",
    "p_429=1.0,only=session_heartbeat",
    "Heartbeats are answered with 429.",
    "SES-005",
    "PRO-066",
    "BAD-021",
    "CON-009",
)
_add_probable("408", "p_408=1.0,only=weights_info", "weights_info is answered with 408.", "CKP-019")
_add_probable(
    "reset",
    "p_reset=1.0,only=get_training_run",
    "The connections of get_training_run are dropped.",
    "MOD-016",
    "RUN-001",
    "BAD-021",
)
_add_probable(
    "lost-reply", "p_lost_reply=1.0,only=finish_session", "The responses to finish_session are lost.", "SES-015"
)
_add_planned(
    "planned-5xx",
    lambda faults: faults.fail_next(503, only="healthz"),
    "The first healthz is answered with 503.",
    "SRV-001",
)
_add_planned(
    "planned-429",
    lambda faults: faults.fail_next(429, only="create_sampling_session"),
    "The first create_sampling_session is answered with 429.",
    unseen="the one test that needs this session is blocked",
)
_add_planned(
    "planned-408",
    lambda faults: faults.fail_next(408, 3, only="retrieve_future"),
    "The first three polls are answered with 408.",
    unseen="a poll with 408 is repeated, as by all clients",
)
_add_planned(
    "planned-reset",
    lambda faults: faults.drop_next(only="weights_info"),
    "The connection of the first weights_info is dropped.",
    "CKP-019",
)
_add_planned(
    "planned-lost-reply",
    lambda faults: faults.drop_next(only="list_training_runs", after_handling=True),
    "The response to the first list_training_runs is lost.",
    "RUN-004",
)
_add_planned(
    "planned-delay",
    lambda faults: faults.delay_next(1.0, only="create_model"),
    "The first create_model is answered a second later.",
    unseen="a response may take a second",
)
