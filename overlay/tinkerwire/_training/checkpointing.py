"""Saving the weights of a model, loading them, and sampling from them: the half of a TrainingClient about weights."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TypeVar

from tinkerwire_base.call import Call
from tinkerwire_base.validators import require_optional_metadata, require_optional_text, require_text, validator_of
from tinkerwire_generated.api.weights import save_weights, save_weights_external, save_weights_for_sampler
from tinkerwire_generated.models import (
    LoadWeightsResponse,
    SamplingClientKind,
    SaveWeightsExternalRequest,
    SaveWeightsExternalResponse,
    SaveWeightsForSamplerRequest,
    SaveWeightsForSamplerResponse,
    SaveWeightsForSamplerResponseInternal,
    SaveWeightsRequest,
    SaveWeightsResponse,
    UntypedAPIFuture,
)

from .._checkpoints.access_token import validate_access_token
from .._checkpoints.paths import reject_path_kind
from .._connection.retry import RetryConfig
from .._futures.future import APIFuture
from .._sampling.client import SamplingClient
from .._session.session import Session
from .idempotent_saves import NamedSaves, Segment
from .model_creation import load_call
from .operations import Operations
from .submitter import RequestBuilder

logger = logging.getLogger(__name__)
T = TypeVar("T")


class CheckpointMixin:
    """The weights of one model, in and out, in the order of the calls."""

    _session: Session
    _operations: Operations
    _saves: NamedSaves

    def save_state(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: Mapping[str, str] | None = None,
    ) -> APIFuture[SaveWeightsResponse]:
        """Save weights and optimizer; the result has the path.

        Args:
            name: what to save them under.
            ttl_seconds: how long they are kept; None: for good.
            overwrite: take the place of what is saved under that name; wire 0.20.0 and later.
            user_metadata: kept with them; wire 0.27.2 and later.
        """
        require_optional_metadata("user_metadata", user_metadata)

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                overwrite=overwrite,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights(body=body)

        return self._save("SaveWeights", "weights", name, call, SaveWeightsResponse)

    async def save_state_async(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: Mapping[str, str] | None = None,
    ) -> APIFuture[SaveWeightsResponse]:
        """:meth:`save_state`; the future comes at once."""
        return self.save_state(name, ttl_seconds, overwrite, user_metadata)

    def load_state(self, path: str, weights_access_token: str | None = None) -> APIFuture[LoadWeightsResponse]:
        """Load weights saved by save_state; the optimizer starts afresh.

        Args:
            path: what save_state gave.
            weights_access_token: for weights that are not one's own; wire 0.18.2 and later.

        Raises:
            ValueError: a path of sampler weights; nothing was sent.
        """
        return self._load(path, weights_access_token, optimizer=False)

    async def load_state_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state`; the future comes at once."""
        return self.load_state(path, weights_access_token)

    def load_state_with_optimizer(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Load weights and optimizer saved by save_state; arguments and errors as for load_state."""
        return self._load(path, weights_access_token, optimizer=True)

    async def load_state_with_optimizer_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """:meth:`load_state_with_optimizer`; the future comes at once."""
        return self.load_state_with_optimizer(path, weights_access_token)

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """Save weights for sampling; arguments as for save_state, and the result has the path."""
        require_optional_metadata("user_metadata", user_metadata)

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsForSamplerRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights_for_sampler(body=body)

        return self._save("SaveWeightsForSampler", "sampler_weights", name, call, SaveWeightsForSamplerResponse)

    async def save_weights_for_sampler_async(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """:meth:`save_weights_for_sampler`; the future comes at once."""
        return self.save_weights_for_sampler(name, ttl_seconds, user_metadata)

    def save_weights_external(
        self, name: str, ttl_seconds: int | None = None, age_encryption_recipients: list[str] | None = None
    ) -> APIFuture[SaveWeightsExternalResponse]:
        """Save weights to download them; the result has the path. Wire 0.28.1 and later.

        Args:
            name: what to save them under.
            ttl_seconds: how long they are kept; None: for good.
            age_encryption_recipients: public age keys that the files are encrypted for; wire 0.33.1 and later.
        """
        if isinstance(age_encryption_recipients, str):
            raise TypeError("age_encryption_recipients: expected a list of keys, got one str")

        def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
            body = SaveWeightsExternalRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                age_encryption_recipients=age_encryption_recipients,
            )
            return save_weights_external(body=body)

        return self._save("SaveWeightsExternal", "external_weights", name, call, SaveWeightsExternalResponse)

    async def save_weights_external_async(
        self, name: str, ttl_seconds: int | None = None, age_encryption_recipients: list[str] | None = None
    ) -> APIFuture[SaveWeightsExternalResponse]:
        """:meth:`save_weights_external`; the future comes at once."""
        return self.save_weights_external(name, ttl_seconds, age_encryption_recipients)

    def save_weights_and_get_sampling_client(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """A client that samples from the weights as they are at this point of the sequence.

        Usable at once; ``await`` it, or call ``.result()``, to wait for it and see its error.

        Args:
            name: keep the weights under it, too; without, they last as long as the session. A name that this client
                has saved sampler weights under before keeps those: the new weights are sampled from, and not kept.
            retry_config: the policy of the new client; this client's own when None.
            record_stability_info: let the server note how its samples differ from training; wire 0.26.2 and later.
            kind: ``inflight``: all inflight clients of this model sample from the weights as they were when the
                newest of them was made; wire 0.38.0 and later.

        Raises:
            ValueError: a name for inflight weights, which are not kept; nothing was sent.
        """
        require_optional_text("name", name)
        validator_of(SamplingClientKind)("kind", kind)
        if name and kind == "inflight":
            raise ValueError(
                f"name: {name!r} cannot be given to inflight weights, which are not kept; leave it away, and call "
                "save_weights_for_sampler(name) to keep them"
            )

        async def saved() -> SaveWeightsForSamplerResponseInternal:
            # Found out before sending: a second try would save what the operations behind this one have made.
            kept = None if name and self._saves.is_used("sampler_weights", name) else name
            if kept != name:
                logger.warning(
                    "save_weights_and_get_sampling_client: %r was saved before and stays as it is; the new client "
                    "samples from the weights of now, which are not kept",
                    name,
                )
            number = None if kept else self._session.next_sampling_session_seq_id()

            def call(model_id: str, seq_id: int) -> Call[UntypedAPIFuture]:
                body = SaveWeightsForSamplerRequest(
                    model_id=model_id, path=kept, sampling_session_seq_id=number, seq_id=seq_id, kind=kind
                )
                return save_weights_for_sampler(body=body)

            operation, result_type = "SaveWeightsForSampler", SaveWeightsForSamplerResponseInternal
            if kept:
                return await self._run_save(operation, "sampler_weights", kept, call, result_type)
            response = await self._operations.run(operation, call, result_type)
            self._operations.failures.warn_of_save("weights to sample from")
            return response

        return SamplingClient._from_saved(
            self._session, self._operations.creation, saved, retry_config, record_stability_info=record_stability_info
        )

    async def save_weights_and_get_sampling_client_async(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """:meth:`save_weights_and_get_sampling_client`, awaited."""
        return await self.save_weights_and_get_sampling_client(name, retry_config, record_stability_info, kind)

    def save_weights_and_get_sampling_client_submit(
        self, retry_config: RetryConfig | None = None
    ) -> APIFuture[SamplingClient]:
        """:meth:`save_weights_and_get_sampling_client` as a future, by its name in SDK 0.4.1 to 0.16.1."""
        client = self.save_weights_and_get_sampling_client(retry_config=retry_config)
        return self._session.connection.start(client.result_async, "SaveWeightsForSampler")

    def create_sampling_client(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """A client that samples from saved sampler weights; see ServiceClient.create_sampling_client."""
        return SamplingClient._create(
            self._session, model_path, None, retry_config, record_stability_info=record_stability_info
        )

    async def create_sampling_client_async(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """:meth:`create_sampling_client`, awaited."""
        return await self.create_sampling_client(model_path, retry_config, record_stability_info)

    def _save(self, kind: str, segment: Segment, name: str, call: RequestBuilder, result_type: type[T]) -> APIFuture[T]:
        require_text("name", name)
        return self._session.connection.start(lambda: self._run_save(kind, segment, name, call, result_type), kind)

    async def _run_save(self, kind: str, segment: Segment, name: str, call: RequestBuilder, result_type: type[T]) -> T:
        response = await self._saves.run(kind, segment, name, call, result_type)
        self._operations.failures.warn_of_save(repr(name))
        return response

    def _load(self, path: str, access_token: str | None, *, optimizer: bool) -> APIFuture[LoadWeightsResponse]:
        reject_path_kind("sampler", path, "load training state")
        validate_access_token(access_token)
        call = load_call(self._session, path, optimizer, access_token)
        return self._operations.start("LoadWeights", call, LoadWeightsResponse)
