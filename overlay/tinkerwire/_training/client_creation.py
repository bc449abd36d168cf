"""Methods of the service client that create training clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinkerwire_base.validators import require_optional
from tinkerwire_generated import models

from .._futures.event_loop import LOOP

# The methods import the modules that train, which takes 15 ms; a fork waits for the lock, and so for the modules.
if TYPE_CHECKING:
    from .._session.session import Session
    from .chunking import ChunkLimits
    from .client import TrainingClient
    from .model_creation import ModelFactory
    from .recovery.settings import Recovery


class TrainingClientFactory:
    """Creation of training clients, for new adapters and from saved weights."""

    _session: Session
    _chunk_limits: ChunkLimits

    def create_lora_training_client(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: dict[str, str] | None = None,
        optimizer: models.OptimizerConfig | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Create a client for a new LoRA adapter on ``base_model``.

        The client can be used at once: its operations queue behind the creation. Await it, or call ``result()``, to
        wait for the creation and get its error.

        Args:
            base_model: name of the base model; get_server_capabilities() lists them.
            rank: rank of the adapter's matrices, at least 1.
            seed: seed of their initial values; None selects one on the server.
            train_mlp: add an adapter to the MLP layers.
            train_attn: add an adapter to the attention layers.
            train_unembed: add an adapter to the unembedding layer.
            user_metadata: metadata to store with the model.
            optimizer: configuration of the optimizer; None selects AdamW, others need wire 0.29.1 or later.
            recover: save every few steps, and resume from the last save after a loss of the session or the model;
                None raises SessionExpiredError then.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the rank is below 1, or no layer gets an adapter.
        """
        with LOOP.opening_lock:
            from . import model_creation  # noqa: PLC0415

        create = model_creation.new_model_factory(
            self._session,
            base_model=base_model,
            rank=rank,
            seed=seed,
            train_mlp=train_mlp,
            train_attn=train_attn,
            train_unembed=train_unembed,
            user_metadata=user_metadata,
            optimizer=optimizer,
        )
        return self._new_training_client(create, recover)

    async def create_lora_training_client_async(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: dict[str, str] | None = None,
        optimizer: models.OptimizerConfig | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Await :meth:`create_lora_training_client`."""
        return await self.create_lora_training_client(
            base_model, rank, seed, train_mlp, train_attn, train_unembed, user_metadata, optimizer, recover=recover
        )

    def create_training_client_from_state(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        optimizer: models.OptimizerConfig | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Create a client for a new adapter that starts with the weights saved at ``path``, and a new optimizer.

        Args:
            path: the path that save_state returned.
            base_model: name of the base model; None looks it up on the server.
            user_metadata: metadata to store with the model, merged over that of the saved model.
            weights_access_token: token for the weights of another user; wire 0.18.2 and later.
            optimizer: configuration of the optimizer; None selects AdamW, others need wire 0.29.1 or later.
            recover: as for :meth:`create_lora_training_client`.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the path is of sampler weights.
        """
        with LOOP.opening_lock:
            from . import model_creation  # noqa: PLC0415

        create = model_creation.model_from_state_factory(
            self._session,
            path,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
            optimizer=optimizer,
            with_optimizer_state=False,
        )
        return self._new_training_client(create, recover)

    async def create_training_client_from_state_async(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        optimizer: models.OptimizerConfig | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Await :meth:`create_training_client_from_state`."""
        return await self.create_training_client_from_state(
            path, base_model, user_metadata, weights_access_token, optimizer, recover=recover
        )

    def create_training_client_from_state_with_optimizer(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Create a client that resumes from the weights and the optimizer state saved at ``path``.

        Arguments and errors as for :meth:`create_training_client_from_state`.
        """
        with LOOP.opening_lock:
            from . import model_creation  # noqa: PLC0415

        create = model_creation.model_from_state_factory(
            self._session,
            path,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
            optimizer=None,
            with_optimizer_state=True,
        )
        return self._new_training_client(create, recover)

    async def create_training_client_from_state_with_optimizer_async(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        *,
        recover: Recovery | None = None,
    ) -> TrainingClient:
        """Await :meth:`create_training_client_from_state_with_optimizer`."""
        return await self.create_training_client_from_state_with_optimizer(
            path, base_model, user_metadata, weights_access_token, recover=recover
        )

    def _new_training_client(self, create: ModelFactory, recover: Recovery | None) -> TrainingClient:
        with LOOP.opening_lock:
            from .client import TrainingClient  # noqa: PLC0415

        if recover is None:
            return TrainingClient(self._session, self._chunk_limits, create)
        with LOOP.opening_lock:
            from .recovery.client import RecoveringTrainingClient  # noqa: PLC0415
            from .recovery.settings import Recovery  # noqa: PLC0415
        require_optional("recover", recover, Recovery)
        return RecoveringTrainingClient(self._session, self._chunk_limits, create, recover)
