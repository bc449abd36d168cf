"""Tests of flags: each wire version has its own, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from support.server_fixtures import ServerFactory
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.sessions.client_config import ClientConfig, parse_flag


def test_client_config_has_the_flags_of_its_version(serve: ServerFactory) -> None:
    """Flags of later and earlier versions are absent, and defaults are those of the version."""
    old = serve(wire_version="0.19.0").post("client/config", {"sdk_version": "0.19.0"}).body
    new = serve(wire_version="0.38.0").post("client/config", {"sdk_version": "0.38.0"}).body
    assert old["parallel_fwdbwd_chunks"] is False
    assert "proto_write_fwdbwd" in old
    assert new["parallel_fwdbwd_chunks"] is True
    assert "proto_write_fwdbwd" not in new
    assert new["fwdbwd_max_chunk_len"] == 1024


def test_configured_flags_replace_defaults(serve: ServerFactory) -> None:
    """Each flag appears in the response that it belongs to."""
    flags = {"proto_compress_fwdbwd": True, "fwdbwd_max_chunk_len": 7, "sample_cancel_enabled": True}
    call = serve(wire_version="0.38.0", client_config=flags)
    fixed = call.post("client/config", {"sdk_version": "0.38.0"}).body
    dynamic = call.post("client/dynamic_config", {"sdk_version": "0.38.0"}).body
    assert (fixed["proto_compress_fwdbwd"], fixed["fwdbwd_max_chunk_len"]) == (True, 7)
    assert (dynamic["sample_cancel_enabled"], dynamic["refresh_interval_sec"]) == (True, 300)
    assert "sample_cancel_enabled" not in fixed


def test_strict_server_requires_sequential_chunks(serve: ServerFactory) -> None:
    """A strict server rejects chunks that arrive ahead, so that clients must not send them."""
    call = serve(wire_version="0.38.0", strict_sequence=True)
    assert call.post("client/config", {"sdk_version": "0.38.0"}).body["parallel_fwdbwd_chunks"] is False


@pytest.mark.parametrize(
    ("version", "flags", "reason"),
    [
        ("0.38.0", {"no_such_flag": True}, "choose from billing_exception_max_pause_duration_sec,"),
        ("0.25.0", {"sample_use_retrieve_futures": True}, "does not exist in wire 0.25.0"),
        ("0.16.1", {"pjwt_auth_enabled": True}, "choose from \\(none\\)"),
        ("0.38.0", {"pjwt_auth_enabled": "yes"}, "expected boolean"),
        ("0.38.0", {"fwdbwd_max_chunk_len": True}, "expected integer"),
        ("0.21.0", {"grpc_target": "there"}, "gRPC"),
    ],
)
def test_invalid_flag_is_rejected(version: str, flags: dict[str, Any], reason: str) -> None:
    """The flag is unknown to the version, has another type, or is unsupported by this server."""
    with pytest.raises(ValueError, match=reason):
        ClientConfig(load_contract(version), flags)


def test_command_line_flags_are_parsed() -> None:
    """Values are JSON, or text if they are not valid JSON; an argument that is not a flag is an error."""
    parsed_flags = [parse_flag(text) for text in ("a=true", "b=7", "c=credential_cmd", "d=x=y")]
    assert parsed_flags == [("a", True), ("b", 7), ("c", "credential_cmd"), ("d", "x=y")]
    for text in ("a", "=1"):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            parse_flag(text)
