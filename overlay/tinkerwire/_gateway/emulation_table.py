"""The table of emulations of the documentation."""

from __future__ import annotations

from typing import NamedTuple


class Emulation(NamedTuple):
    """One row of the table of emulations."""

    feature: str
    clients: str
    upstreams: str
    how: str
    why: str


EMULATIONS: tuple[Emulation, ...] = (
    Emulation(
        "client/config, client/dynamic_config",
        "0.18.2 on, 0.25.0 on",
        "any",
        "The flags of the upstream, or else the defaults of the client's version, as far as they are true of both.",
        "A flag only makes clients use what it names; a flag that is off keeps them from it.",
    ),
    Emulation(
        "auth/token",
        "0.18.2 on",
        "without tokens, or with --api-key",
        "Flag pjwt_auth_enabled is off, so that clients send their key itself.",
        "The key and the token name the same user.",
    ),
    Emulation(
        "sample_sequence_ids",
        "0.26.2 on",
        "before 0.26.2, or without them",
        "The ids REQUEST:0, REQUEST:1 and so on.",
        "The ids only have to be distinct; no request sends them back to such an upstream.",
    ),
    Emulation(
        "prompt_logprobs",
        "any",
        "that omit the null of the first token",
        "null, then the values of the upstream.",
        "The first token has no logprob; the gateway remembers the number of tokens.",
    ),
    Emulation(
        "load_weights that creates a model",
        "0.24.1 on",
        "that cannot",
        "weights_info (before 0.6.0 get_training_run), create_model, then load_weights, as one future.",
        "Clients before 0.24.1 make these requests themselves.",
    ),
    Emulation(
        "forward and forward_backward",
        "any",
        "any",
        "forward is forward_backward with forward_only in protobuf, and an operation of its own in JSON.",
        "The contract has both forms of one operation.",
    ),
    Emulation(
        "results that are not ready",
        "any",
        "any",
        "The gateway polls the upstream for up to 30 s and then responds with 408.",
        "A poll changes nothing.",
    ),
    Emulation(
        "failures",
        "any",
        "that report them as status 400, 409 or 422, or as detail",
        "Status 200 with error and category.",
        "Official clients take other forms for errors of the poll itself.",
    ),
    Emulation(
        "values in place of futures, and futures in place of values",
        "any",
        "that do so",
        "The gateway keeps the value under an id of its own, or polls for the value.",
        "The client gets the same value in the form of the contract.",
    ),
    Emulation(
        "weights_info",
        "0.6.0 on",
        "before 0.6.0",
        "get_training_run of the run that the path names.",
        "Both describe the base model and the rank of the run.",
    ),
    Emulation(
        "get_sampler",
        "0.6.0 on",
        "before 0.6.0",
        "The base model and path of create_sampling_session, which the gateway remembers.",
        "A sampling session never changes either of them.",
    ),
    Emulation(
        "list_checkpoints and list_model_checkpoints",
        "any",
        "that have the other one",
        "One in place of the other.",
        "A model and its training run have the same id.",
    ),
    Emulation(
        "telemetry, session_heartbeat, finish_session",
        "any",
        "without them",
        "Accepted, and not passed on.",
        "No response or result depends on them; such an upstream ends sessions by itself.",
    ),
    Emulation(
        "display_name of sessions",
        "0.34.0 on",
        "before 0.34.0",
        "Not passed on; the gateway remembers it and adds it to get_session.",
        "It is a name for people, and no other response has it.",
    ),
    Emulation(
        "provenance spans of datums",
        "0.26.2 on",
        "before 0.26.2, or with JSON batches",
        "Not passed on.",
        "They record where tokens came from, and change no loss.",
    ),
    Emulation(
        "optimizer of load_weights",
        "before 0.6.0",
        "0.6.0 on",
        "false; and false is not sent to upstreams before 0.6.0.",
        "Without the field, a server loads the weights alone.",
    ),
    Emulation(
        "optimizer_config of AdamW, record_stability_info false",
        "0.29.1 on, 0.26.2 on",
        "before",
        "Not sent.",
        "Such an upstream has no other optimizer, and records nothing.",
    ),
    Emulation(
        "process_uuid of telemetry",
        "before 0.24.1",
        "0.24.1 on",
        "A UUID that is derived from the session; and none is sent to upstreams before 0.24.1.",
        "Such a client has one process for each session, and no result depends on telemetry.",
    ),
    Emulation(
        "tokens of images",
        "before 0.6.0",
        "0.6.0 on",
        "tokens is sent as expected_tokens; height and width are those of the image itself.",
        "The field was renamed.",
    ),
)
