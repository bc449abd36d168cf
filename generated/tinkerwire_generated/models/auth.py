# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family auth."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, ForbidExtra, define
from tinkerwire_base.validators import (
    field_validator,
)


@define
class AccessTokenResponse(AllowExtra):
    """Final response of the sign-in service.

    Wire: 0.26.2 to before 0.29.1.
    """

    access_token: str
    """Token that creates an API key."""


@define
class ApiKeyDetails(AllowExtra):
    """Owner of an API key.

    Wire: 0.26.2 and later.
    """

    org_details: ApiKeyOrgDetails
    """The organization."""
    user_details: ApiKeyUserDetails
    """The user."""


@define
class ApiKeyOrgDetails(AllowExtra):
    """The organization of a key.

    Wire: 0.26.2 and later.
    """

    name: str
    """Name of the organization."""


@define
class ApiKeyUserDetails(AllowExtra):
    """The user of a key.

    Wire: 0.26.2 and later.
    """

    email: str
    """Address of the user."""


@define
class AuthConfigResponse(AllowExtra):
    """Configuration for signing in.

    Wire: 0.26.2 to before 0.29.1.
    """

    clientId: str
    """Identifier of the client at the sign-in service; also read under the name client_id."""


@define
class AuthErrorResponse(AllowExtra):
    """Body of a rejected request about keys.

    Wire: 0.26.2 and later.
    """

    detail: str | None = field(default=None)
    """Error message."""


@define
class AuthTokenRequest(ForbidExtra):
    """Request for a token; has no fields.

    Wire: 0.18.2 and later.
    """


@define
class AuthTokenResponse(AllowExtra):
    """A short-lived token.

    Wire: 0.18.2 and later.
    """

    jwt: str
    """The token, which goes in X-API-Key in place of the key."""


@define
class ClientConfigRequest(ForbidExtra):
    """Request for the settings of a client.

    Wire: 0.18.2 and later.
    """

    sdk_version: str = field(validator=field_validator())
    """Wire version of the client, for example 0.18.2."""


@define
class ClientConfigResponse(AllowExtra):
    """Settings that the server requires, fixed for the life of a client; all are optional.

    Wire: 0.18.2 and later.
    """

    pjwt_auth_enabled: bool = field(default=False)
    """True if the key must be exchanged at auth/token for a JWT."""
    credential_default_source: str = field(default="api_key")
    """Source of credentials, api_key or credential_cmd."""
    sample_dispatch_bytes_semaphore_size: int = field(default=10485760)
    """Maximum number of bytes of sample requests in flight."""
    inflight_response_bytes_semaphore_size: int = field(default=52428800)
    """Maximum number of bytes of results being fetched concurrently."""
    parallel_fwdbwd_chunks: bool = field(default=True)
    """True if the chunks of one forward_backward are sent concurrently."""
    proto_write_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """True if the body of forward_backward is protobuf. (wire 0.19.0 to before 0.25.0)"""
    billing_exception_max_pause_duration_sec: int = field(default=3600)
    """Seconds for which clients retry after a 402. (wire 0.20.0 and later)"""
    grpc_target: str | None = field(default=None, metadata={"until": "0.22.7"})
    """Address for polling futures by gRPC; null for none. (wire 0.21.0 to before 0.22.7)"""
    enable_grpc_retrieve_future: bool = field(default=False, metadata={"until": "0.22.7"})
    """True if futures are polled by gRPC. (wire 0.21.0 to before 0.22.7)"""
    sample_no_retries: bool = field(default=False)
    """True if clients do not retry failed samples. (wire 0.21.0 and later)"""
    proto_compress_fwdbwd: bool = field(default=False)
    """True if the protobuf body of forward_backward is compressed by zstd. (wire 0.22.7 and later)"""
    fwd_via_fwdbwd: bool = field(default=False, metadata={"until": "0.25.0"})
    """True if forward is sent as forward_backward with forward_only. (wire 0.22.7 to before 0.25.0)"""
    sample_enable_stuck_detection: bool = field(default=True)
    """True if clients give up samples without progress. (wire 0.22.7 and later)"""
    sample_max_concurrent_requests: int = field(default=2000)
    """Maximum number of samples awaited concurrently. (wire 0.22.7 and later)"""
    use_pyqwest_transport: bool = field(default=True)
    """True if the official client uses pyqwest instead of httpx. (wire 0.22.7 and later)"""
    create_model_via_load_weights: bool = field(default=False, metadata={"until": "0.38.0"})
    """True if a model is created from saved weights by load_weights alone. (wire 0.24.1 to before 0.38.0)"""
    fwdbwd_max_chunk_len: int = field(default=1024)
    """Maximum number of datums of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_max_chunk_bytes_count: int = field(default=5000000)
    """Maximum number of bytes of one forward_backward. (wire 0.25.0 and later)"""
    fwdbwd_dispatch_bytes_semaphore_size: int = field(default=50000000)
    """Maximum number of bytes of forward_backward in flight. (wire 0.25.0 and later)"""
    sample_use_retrieve_futures: bool = field(default=False)
    """True if samples are waited for by retrieve_futures. (wire 0.26.2 and later)"""
    sample_join_sampling_session: bool = field(default=False)
    """True if copies of a sampling client get their number from join_sampling_session. (wire 0.32.0 and later)"""
    custom_loss_server_side: bool = field(default=False)
    """True if the server computes custom losses. (wire 0.36.0 and later)"""


@define
class ClientDynamicConfigResponse(AllowExtra):
    """Settings that may change during the life of a client.

    Wire: 0.25.0 and later.
    """

    refresh_interval_sec: int = field(default=300)
    """Seconds until clients should read the settings again; clients wait at least 10."""
    sample_cancel_enabled: bool = field(default=False)
    """True if clients cancel abandoned samples. (wire 0.26.2 and later)"""
    sample_cancel_max_batch_size: int = field(default=64)
    """Maximum number of cancellations in flight. (wire 0.26.2 and later)"""


@define
class CreateApiKeyRequest(ForbidExtra):
    """Request to create an API key for the user who signed in.

    Wire: 0.26.2 to before 0.29.1.
    """

    name: str = field(validator=field_validator())
    """Name of the key."""
    note: str = field(validator=field_validator())
    """Note of the user on the key."""


@define
class CreatedApiKey(AllowExtra):
    """A new API key.

    Wire: 0.26.2 to before 0.29.1.
    """

    api_key: str
    """The secret key; no other response has it."""
    id: int
    """Number of the key."""
    details: ApiKeyDetails
    """Owner of the key."""


@define
class DeviceAuthorizationResponse(AllowExtra):
    """Response of the sign-in service, a third party whose calls the contract does not describe.

    Wire: 0.26.2 to before 0.29.1.
    """

    device_code: str
    """Identifier of the sign-in."""
    user_code: str
    """Code that the user enters."""
    verification_uri: str
    """URL where the user enters the code."""
    expires_in: float
    """Seconds until the sign-in expires."""
    verification_uri_complete: str | None = field(default=None)
    """The URL with the code in it."""
    interval: float | None = field(default=None)
    """Seconds between two polls."""


@define
class GeneratedKey(AllowExtra):
    """An API key that a sign-in made, as kept in the credentials file.

    Wire: 0.26.2 and later.
    """

    key: str
    """The secret key."""
    name: str
    """Name of the key."""
    details: ApiKeyDetails
    """Owner of the key."""
    type: Literal["generated"] = field(default="generated")
    """Tag of the record."""


@define
class ManualKey(AllowExtra):
    """An API key that the user typed in, as kept in the credentials file.

    Wire: 0.26.2 and later.
    """

    key: str
    """The secret key."""
    name: str
    """Name of the key."""
    type: Literal["manual"] = field(default="manual")
    """Tag of the record."""
    note: str | None = field(default=None)
    """Note of the user."""
    details: ApiKeyDetails | None = field(default=None)
    """Owner of the key."""


KeyRecordV1: TypeAlias = ManualKey | GeneratedKey
"""
An API key in the credentials file.

Wire: 0.26.2 and later.
"""


@define
class SelfApiKeyResponse(AllowExtra):
    """The API key that the request was sent with.

    Wire: 0.26.2 and later.
    """

    key_id: int
    """Number of the key."""
    name: str
    """Name of the key."""
    note: str
    """Note of the user on the key."""
    details: ApiKeyDetails
    """Owner of the key."""


@define
class StoredCredentialsV1(AllowExtra):
    """The credentials file of a user; never sent.

    Wire: 0.26.2 and later.
    """

    version: Literal[1] = field(default=1)
    """Version of the file format."""
    default: str | None = field(default=None)
    """Entry of keys that is in use; null for none."""
    keys: dict[str, KeyRecordV1] = field(factory=dict)
    """API keys by identifier."""


@define
class WhoamiResponse(AllowExtra):
    """Identity of the caller, as clients read it from their JWT; never on the wire.

    Wire: 0.23.4 and later.
    """

    user_urn: str
    """The user."""
    email: str | None = field(default=None)
    """Address of the user."""
    org_urn: str | None = field(default=None)
    """The organization. (wire 0.34.0 and later)"""
