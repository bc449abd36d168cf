"""Checkpoints of a TrainingClient: save weights, load them, and sample from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from tinkerwire_base.call import Call
from tinkerwire_base.validators import require_optional_metadata, require_optional_text, require_text, validator_of
from tinkerwire_generated import models
from tinkerwire_generated.api.weights import save_weights, save_weights_external, save_weights_for_sampler
from tinkerwire_generated.constants import CHECKPOINT_SEGMENTS

from .._checkpoints.access_token import validate_access_token
from .._checkpoints.paths import reject_path_kind
from .._connection.retry import RetryConfig
from .._futures.future import APIFuture
from .._sampling.client import SamplingClient
from .._session.session import Session
from .idempotent_saves import NamedSaves
from .model_creation import load_call
from .operations import Operations
from .submitter import RequestBuilder

logger = logging.getLogger(__name__)
T = TypeVar("T")


class CheckpointMixin:
    """Methods of TrainingClient that save and load weights, in call order with its other operations."""

    _session: Session
    _operations: Operations
    _saves: NamedSaves

    def save_state(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: Mapping[str, str] | None = None,
    ) -> APIFuture[models.SaveWeightsResponse]:
        """Save the weights and the optimizer state.

        Args:
            name: name of the checkpoint.
            ttl_seconds: lifetime of the checkpoint, in seconds; None keeps it indefinitely.
            overwrite: replace the checkpoint that has this name; wire 0.20.0 and later.
            user_metadata: metadata to store with the checkpoint; wire 0.27.2 and later.

        Returns:
            A future of the path, ``tinker://RUN/weights/NAME``.

        Raises:
            TypeError: the name or the metadata has the wrong type.
            ConflictError: raised by the future; the server rejects the request, as an earlier checkpoint has this name.
            RequestFailedError: raised by the future; the save failed. The embedded server checks the name only then,
                because the operations before the save may use it or free it.
            DialectError: raised by the future; the wire version of the server does not support an argument.
        """
        require_optional_metadata("user_metadata", user_metadata)

        def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
            body = models.SaveWeightsRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                overwrite=overwrite,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights(body=body)

        return self._save("SaveWeights", CHECKPOINT_SEGMENTS["training"], name, call, models.SaveWeightsResponse)

    async def save_state_async(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: Mapping[str, str] | None = None,
    ) -> APIFuture[models.SaveWeightsResponse]:
        """Return the future of :meth:`save_state` at once."""
        return self.save_state(name, ttl_seconds, overwrite, user_metadata)

    def load_state(self, path: str, weights_access_token: str | None = None) -> APIFuture[models.LoadWeightsResponse]:
        """Load weights saved by save_state, and reset the optimizer.

        Args:
            path: the path that save_state returned.
            weights_access_token: token for the weights of another user; wire 0.18.2 and later.

        Raises:
            ValueError: the path is of sampler weights.
        """
        return self._load(path, weights_access_token, optimizer=False)

    async def load_state_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[models.LoadWeightsResponse]:
        """Return the future of :meth:`load_state` at once."""
        return self.load_state(path, weights_access_token)

    def load_state_with_optimizer(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[models.LoadWeightsResponse]:
        """Load weights and optimizer state saved by save_state; arguments and errors as for load_state."""
        return self._load(path, weights_access_token, optimizer=True)

    async def load_state_with_optimizer_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[models.LoadWeightsResponse]:
        """Return the future of :meth:`load_state_with_optimizer` at once."""
        return self.load_state_with_optimizer(path, weights_access_token)

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[models.SaveWeightsForSamplerResponse]:
        """Save weights for sampling, without the optimizer state; arguments, result and errors as for save_state."""
        require_optional_metadata("user_metadata", user_metadata)

        def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
            body = models.SaveWeightsForSamplerRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                user_metadata=dict(user_metadata) if user_metadata else None,
            )
            return save_weights_for_sampler(body=body)

        return self._save(
            "SaveWeightsForSampler", CHECKPOINT_SEGMENTS["sampler"], name, call, models.SaveWeightsForSamplerResponse
        )

    async def save_weights_for_sampler_async(
        self, name: str, ttl_seconds: int | None = None, user_metadata: Mapping[str, str] | None = None
    ) -> APIFuture[models.SaveWeightsForSamplerResponse]:
        """Return the future of :meth:`save_weights_for_sampler` at once."""
        return self.save_weights_for_sampler(name, ttl_seconds, user_metadata)

    def save_weights_external(
        self, name: str, ttl_seconds: int | None = None, age_encryption_recipients: list[str] | None = None
    ) -> APIFuture[models.SaveWeightsExternalResponse]:
        """Save weights for download; wire 0.28.1 and later.

        Args:
            name: name of the checkpoint.
            ttl_seconds: lifetime of the checkpoint, in seconds; None keeps it indefinitely.
            age_encryption_recipients: public age keys to encrypt the files for; wire 0.33.1 and later.

        Returns:
            A future of the path.

        Raises:
            TypeError: the name or the keys have the wrong type.
        """
        if isinstance(age_encryption_recipients, str):
            raise TypeError("age_encryption_recipients: expected a list of keys, got one str")

        def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
            body = models.SaveWeightsExternalRequest(
                model_id=model_id,
                path=name,
                seq_id=seq_id,
                ttl_seconds=ttl_seconds,
                age_encryption_recipients=age_encryption_recipients,
            )
            return save_weights_external(body=body)

        return self._save(
            "SaveWeightsExternal", CHECKPOINT_SEGMENTS["external"], name, call, models.SaveWeightsExternalResponse
        )

    async def save_weights_external_async(
        self, name: str, ttl_seconds: int | None = None, age_encryption_recipients: list[str] | None = None
    ) -> APIFuture[models.SaveWeightsExternalResponse]:
        """Return the future of :meth:`save_weights_external` at once."""
        return self.save_weights_external(name, ttl_seconds, age_encryption_recipients)

    def save_weights_and_get_sampling_client(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: models.SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """Return a client that samples from the weights as they are after the operations started so far.

        The client can be used at once. Await it, or call ``result()``, to wait for its creation and get its error.

        Args:
            name: name to save the weights under; None keeps them until the session ends. If this client has saved
                sampler weights under the name before, those stay, and the new weights are kept until the session ends.
            retry_config: retry policy of the new client; None uses that of this client.
            record_stability_info: record on the server how samples differ from training; wire 0.26.2 and later.
            kind: ``snapshot`` samples from the weights of this call. ``inflight`` clients of a model all sample from
                the weights of the newest such call; wire 0.38.0 and later.

        Raises:
            ValueError: ``name`` is set for inflight weights, which are not saved.
        """
        require_optional_text("name", name)
        validator_of(models.SamplingClientKind)("kind", kind)
        if name and kind == "inflight":
            raise ValueError(
                f"name: inflight weights cannot be saved under a name, got {name!r}; omit it, and call "
                "save_weights_for_sampler(name) to save them"
            )

        async def save() -> models.SaveWeightsForSamplerResponseInternal:
            # Checked before sending: a second save would contain the effects of the operations behind this one.
            saved_name = None if name and self._saves.is_used("sampler_weights", name) else name
            if saved_name != name:
                logger.warning(
                    "save_weights_and_get_sampling_client: %r was saved before and is not overwritten; the new client "
                    "samples from the current weights, which are kept until the session ends",
                    name,
                )
            sampling_seq_id = None if saved_name else self._session.next_sampling_session_seq_id()

            def call(model_id: str, seq_id: int) -> Call[models.UntypedAPIFuture]:
                body = models.SaveWeightsForSamplerRequest(
                    model_id=model_id,
                    path=saved_name,
                    sampling_session_seq_id=sampling_seq_id,
                    seq_id=seq_id,
                    kind=kind,
                )
                return save_weights_for_sampler(body=body)

            operation, result_type = "SaveWeightsForSampler", models.SaveWeightsForSamplerResponseInternal
            if saved_name:
                return await self._run_save(operation, "sampler_weights", saved_name, call, result_type)
            response = await self._operations.run(operation, call, result_type)
            self._operations.failures.warn_of_save("weights to sample from")
            return response

        return SamplingClient._from_saved(
            self._session, self._operations.creation, save, retry_config, record_stability_info=record_stability_info
        )

    async def save_weights_and_get_sampling_client_async(
        self,
        name: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
        kind: models.SamplingClientKind = "snapshot",
    ) -> SamplingClient:
        """Await :meth:`save_weights_and_get_sampling_client`."""
        return await self.save_weights_and_get_sampling_client(name, retry_config, record_stability_info, kind)

    def save_weights_and_get_sampling_client_submit(
        self, retry_config: RetryConfig | None = None
    ) -> APIFuture[SamplingClient]:
        """Return a future of :meth:`save_weights_and_get_sampling_client`; the name in SDK 0.4.1 to 0.16.1."""
        client = self.save_weights_and_get_sampling_client(retry_config=retry_config)
        return self._session.connection.start(client.result_async, "SaveWeightsForSampler")

    def create_sampling_client(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """Create a client that samples from saved sampler weights; see ServiceClient.create_sampling_client."""
        return SamplingClient._create(
            self._session, model_path, None, retry_config, record_stability_info=record_stability_info
        )

    async def create_sampling_client_async(
        self, model_path: str, retry_config: RetryConfig | None = None, record_stability_info: bool = False
    ) -> SamplingClient:
        """Await :meth:`create_sampling_client`."""
        return await self.create_sampling_client(model_path, retry_config, record_stability_info)

    def _save(self, kind: str, segment: str, name: str, call: RequestBuilder, result_type: type[T]) -> APIFuture[T]:
        require_text("name", name)
        return self._start(
            kind,
            lambda: self._session.connection.start(
                lambda: self._run_save(kind, segment, name, call, result_type), kind
            ),
        )

    async def _run_save(self, kind: str, segment: str, name: str, call: RequestBuilder, result_type: type[T]) -> T:
        response = await self._saves.run(kind, segment, name, call, result_type)
        self._operations.failures.warn_of_save(repr(name))
        return response

    def _load(self, path: str, access_token: str | None, *, optimizer: bool) -> APIFuture[models.LoadWeightsResponse]:
        reject_path_kind("sampler", path, "load training state")
        validate_access_token(access_token)
        call = load_call(self._session, path, optimizer, access_token)
        return self._start(
            "LoadWeights", lambda: self._operations.start("LoadWeights", call, models.LoadWeightsResponse)
        )

    def _start(self, kind: str, start: Callable[[], APIFuture[T]]) -> APIFuture[T]:
        """Start an operation of the model; a client that recovers from a loss may start it again, on another model."""
        return start()
