"""The server under test: what it is, and the sessions, models and samplers that tests share or make for themselves."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from tinkerwire_generated import models
from tinkerwire_generated.api.auth import auth_token
from tinkerwire_generated.api.runs import delete_checkpoint, list_user_checkpoints
from tinkerwire_generated.api.sampling import create_sampling_session
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.api.training import create_model

from ..._checkpoints.paths import parse_checkpoint_address
from ..._futures.logger import log
from ..._futures.timeout import wait_for
from ..._wire.dialect import Dialect
from ..client.contract import Contract
from ..client.futures import Futures, Result
from ..client.wire_client import WireClient
from ..violation import Blocked, NotApplicable, Violation
from .sampler import OpenSampler
from .saved_paths import SavedPaths
from .sessions import RunSessions
from .training_model import TrainingModel, make_datum

T = TypeVar("T")
LORA_RANK = 4
MODEL_SEED = 7
PAGE_LENGTH = 100
MAX_PAGES = 20
"""Pages of a list in which the kit looks for an entry of its own."""
DELETION_TIMEOUT_S = 60.0
"""Time in which the end of a run deletes models and checkpoints."""
CREATION_TIMEOUT_S = 30.0
"""Time for which the end of a run waits for a new model, or a save, that an interrupted test began."""
CLEAN_STEP_TIMEOUT_S = 10.0
"""Time for the step that clears the gradients of a model before it is unloaded."""
SAMPLER_STEPS = 3
"""Steps of the trained sampler: its log probabilities differ clearly from those of the base model."""


class Server:
    """One server under test.

    Args:
        client: sends the requests.
        api_key: the key that the user gave; None for none.
        base_model: name of the model to train and sample; None for the first that the server names.
    """

    def __init__(self, client: WireClient, api_key: str | None, base_model: str | None) -> None:
        self.client = client
        self.futures = Futures(client)
        self.api_key = api_key
        self.missing: set[str] = set()
        """Optional operations that the server does not have."""
        self.evidence: tuple[str, ...] = ()
        """The observations from which the wire version was found out."""
        self.run_name = f"conformance-{secrets.token_hex(4)}"
        """Start of the names of all checkpoints of this run."""
        self.saved_paths = SavedPaths()
        """Paths of checkpoints, which are deleted at the end of the run."""
        self._base_model = base_model
        self._shared: dict[str, Any] = {}
        self.sessions = RunSessions(client)
        self._further_clients: list[WireClient] = []
        self._local_models: list[TrainingModel] = []
        self._creations: set[asyncio.Future[Result]] = set()
        """Creations of models whose tests do not wait for them, or not any more."""
        self._shared_models: list[TrainingModel] = []
        self._model_seq_ids: dict[str, int] = {}
        self._sampler_seq_ids: dict[str, int] = {}
        self._names = 0

    @property
    def wire(self) -> str:
        """The wire version under test."""
        return self.client.wire

    @property
    def contract(self) -> Contract:
        """The contract of that version."""
        return self.client.contract

    # --- what every test may use --------------------------------------------------------------------------------------

    def require_field(self, model: str, field: str) -> None:
        """Raise NotApplicable if the wire version lacks a field."""
        if not self.contract.has_field(model, field):
            raise NotApplicable(f"wire {self.wire} has no {model}.{field}")

    def require_operation(self, name: str) -> None:
        """Raise NotApplicable if the wire version, or the server, lacks an operation."""
        if not self.contract.has_operation(name):
            raise NotApplicable(f"wire {self.wire} has no {name}")
        if name in self.missing:
            raise NotApplicable(f"the server has no {name}")

    def new_name(self) -> str:
        """Return a name for a checkpoint that no other test uses."""
        self._names += 1
        return f"{self.run_name}-{self._names}"

    async def base_model(self) -> str:
        """Return the name of the model under test."""
        if self._base_model is None:
            self._base_model = await self.share("base model", self._find_base_model)
        return self._base_model

    async def session(self) -> str:
        """Return the id of the session that tests share."""
        return await self.share("session", self._new_shared_session)

    async def model(self) -> TrainingModel:
        """Return the model that tests share; other tests have trained it."""
        return await self.share("model", self.new_shared_model)

    async def base_sampler(self) -> OpenSampler:
        """Return a sampling session on the base model, which tests share."""
        return await self.share("sampler", self.new_sampler)

    async def share(self, name: str, create: Callable[[], Awaitable[T]]) -> T:
        """Return what a function creates; it is called once, and its failure blocks every test that needs it."""
        if name not in self._shared:
            try:
                self._shared[name] = await create()
            except Violation as error:
                self._shared[name] = Blocked(f"{name}: {error}", error.exchange)
        value = self._shared[name]
        if isinstance(value, Blocked):
            raise value
        shared: T = value
        return shared

    async def renew_session(self) -> bool:
        """Forget what tests share if the server has ended their session, so that it is created again.

        Returns:
            True if the server has ended the session.
        """
        session_id = self._shared.get("session")
        if not isinstance(session_id, str) or not await self.sessions.has_ended(session_id):
            return False
        self.sessions.let_go(session_id)
        self._shared.clear()
        return True

    async def new_shared_model(self) -> TrainingModel:
        """Create a model that is unloaded at the end of the run; see :meth:`share`."""
        result = await self.create_model()
        model = TrainingModel(self.client, result.value.model_id, self.saved_paths)
        self._shared_models.append(model)
        return model

    async def trained_sampler(self) -> tuple[TrainingModel, OpenSampler]:
        """Return a model that was trained, and a sampling session on its weights; nobody trains it again."""
        return await self.share("trained sampler", self._new_trained_sampler)

    async def new_model(self, *, session_id: str | None = None, rank: int = LORA_RANK, **lora: Any) -> TrainingModel:
        """Create a model for one test, which is unloaded after it.

        Args:
            session_id: its session; None for the shared one.
            rank: rank of the adapter.
            lora: further fields of LoraConfig; by default a seed of 7.

        Raises:
            Blocked: the server does not create it.
        """
        async with _preparing("a new model"):
            result = await self.create_model(session_id=session_id, rank=rank, **lora)
            model = TrainingModel(self.client, result.value.model_id, self.saved_paths)
        self._local_models.append(model)
        return model

    async def create_model(self, *, session_id: str | None = None, **lora: Any) -> Result:
        """Create a model and return the result; the caller unloads it. See :meth:`new_model`."""
        body = await self.create_model_request(session_id=session_id, **lora)
        # The end of a test, or of the run, does not end the creation, so that the model can be unloaded.
        creation = asyncio.ensure_future(self.futures.run(create_model(body=body)))
        self._creations.add(creation)
        result = await asyncio.shield(creation)
        # After a cancellation it stays, even if it is done: its caller did not receive the id of the model.
        self._creations.discard(creation)
        return result

    async def create_model_request(self, *, session_id: str | None = None, **lora: Any) -> models.CreateModelRequest:
        """Return the request of a new model under the next model_seq_id of its session."""
        session_id = session_id or await self.session()
        number = self.take_model_seq_id(session_id)
        return models.CreateModelRequest(
            session_id=session_id,
            model_seq_id=number,
            base_model=await self.base_model(),
            lora_config=models.LoraConfig(**{"rank": LORA_RANK, "seed": MODEL_SEED, **lora}),
        )

    def adopt(self, model_id: str) -> TrainingModel:
        """Return a model that a test created itself; it is unloaded after the test."""
        model = TrainingModel(self.client, model_id, self.saved_paths)
        self._local_models.append(model)
        return model

    async def new_sampler(self, model_path: str | None = None, *, session_id: str | None = None) -> OpenSampler:
        """Create a sampling session on saved weights; with None on the base model.

        Raises:
            Blocked: the server does not create it.
        """
        async with _preparing("a new sampling session"):
            session_id = session_id or await self.session()
            number = self.take_sampler_seq_id(session_id)
            body = models.CreateSamplingSessionRequest(
                session_id=session_id,
                sampling_session_seq_id=number,
                base_model=None if model_path else await self.base_model(),
                model_path=model_path,
            )
            created, _ = await self.client.call(create_sampling_session(body=body))
        return OpenSampler(self.client, created.sampling_session_id)

    def open_client(self, dialect: Dialect) -> WireClient:
        """Return a client of another wire version or other flags, with the key of the user; the run closes it."""
        client = WireClient(self.client.base_url, self.api_key, dialect)
        self._further_clients.append(client)
        return client

    def take_model_seq_id(self, session_id: str) -> int:
        """Return the number of the next model of a session."""
        number = self._model_seq_ids.get(session_id, 0)
        self._model_seq_ids[session_id] = number + 1
        return number

    def take_sampler_seq_id(self, session_id: str) -> int:
        """Return the number of the next sampling session of a session."""
        number = self._sampler_seq_ids.get(session_id, 0)
        self._sampler_seq_ids[session_id] = number + 1
        return number

    # --- start and end ------------------------------------------------------------------------------------------------

    async def authenticate(self) -> None:
        """Exchange the key for a token if the server asks for it."""
        if self.client.dialect.config.pjwt_auth_enabled and self.contract.has_operation("auth_token"):
            token, _ = await self.client.call(auth_token(body=models.AuthTokenRequest()))
            self.client.use_key(token.jwt)

    async def end_test(self) -> None:
        """Unload the models that the last test made."""
        while self._local_models:
            # A model stays in the list until it is unloaded, so that the end of an interrupted run unloads it.
            await self._unload(self._local_models[:1])
            del self._local_models[:1]

    async def close(self) -> None:
        """Delete what the run made on the server, within limits of time, and close all connections.

        Failures are ignored. If this is cancelled, the sessions are finished and the rest is left to the server.
        """
        try:
            await wait_for(self._delete_models_and_checkpoints(), DELETION_TIMEOUT_S)
        except asyncio.TimeoutError:
            text = "the server did not delete the models and checkpoints of the run within %g s"
            log.warning(text, DELETION_TIMEOUT_S)
        finally:
            try:
                await self.sessions.finish()
            finally:
                for client in (*self._further_clients, self.client):
                    await client.close()

    async def _delete_models_and_checkpoints(self) -> None:
        await self._adopt_creations()
        await self._unload([*self._local_models, *self._shared_models])
        saved = await self.saved_paths.settle(CREATION_TIMEOUT_S)
        for path in dict.fromkeys([*saved, *await self._list_own_checkpoints()]):
            with suppress(Exception):
                await self.client.call(delete_checkpoint(*parse_checkpoint_address(path)))

    async def _list_own_checkpoints(self) -> list[str]:
        """Return the paths of checkpoints with names of this run: an interrupted test did not receive its path."""
        paths: list[str] = []
        if not self.contract.has_operation("list_user_checkpoints"):
            return paths
        with suppress(Exception):
            for page in range(MAX_PAGES):
                call = list_user_checkpoints(limit=PAGE_LENGTH, offset=page * PAGE_LENGTH)
                listed, _ = await self.client.call(call)
                paths += [item.tinker_path for item in listed.checkpoints if self.run_name in item.tinker_path]
                if len(listed.checkpoints) < PAGE_LENGTH:
                    break
        return paths

    async def _adopt_creations(self) -> None:
        """Wait for models that were still being created when their tests ended."""
        if not self._creations:
            return
        ended, running = await asyncio.wait(self._creations, timeout=CREATION_TIMEOUT_S)
        for creation in running:
            creation.cancel()
        for creation in ended:
            if not creation.cancelled() and creation.exception() is None:
                self.adopt(creation.result().value.model_id)

    async def _unload(self, unloaded: list[TrainingModel]) -> None:
        for model in unloaded:
            if model.has_gradients:
                # Some servers give the gradients of an unloaded model to the next one; one requirement tests it.
                with suppress(Exception):
                    step = await self.futures.submit(model.optim_step_call(learning_rate=0.0))
                    await self.futures.wait(step, CLEAN_STEP_TIMEOUT_S)
            with suppress(Exception):
                await self.futures.wait(await model.unload(), 30)

    async def _find_base_model(self) -> str:
        capabilities, exchange = await self.client.call(get_server_capabilities())
        names = [model.model_name for model in capabilities.supported_models if model.model_name]
        if not names:
            raise Violation("the name of at least one supported model", "none", exchange)
        return names[0]

    async def _new_shared_session(self) -> str:
        session_id = await self.sessions.create()
        self.sessions.keep_alive(session_id)
        return session_id

    async def _new_trained_sampler(self) -> tuple[TrainingModel, OpenSampler]:
        model = await self.new_shared_model()
        for _ in range(SAMPLER_STEPS):
            await model.forward_backward([make_datum()])
            await model.optim_step()
        path = await model.save_for_sampler(self.new_name())
        return model, await self.new_sampler(path)


@asynccontextmanager
async def _preparing(what: str) -> AsyncIterator[None]:
    """Turn a violation during the preparation of a test into Blocked."""
    try:
        yield
    except Violation as error:
        raise Blocked(f"{what}: {error}", error.exchange) from error
