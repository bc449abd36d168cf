"""Requirements on what releases of the official SDK send: one for each release and each feature."""

from __future__ import annotations

from ..official_sdk.official_client import OfficialClient
from ..official_sdk.step import run_steps
from ..official_sdk.steps_by_feature import STEPS
from ..requirement import Area, Feature, Test
from ..subject.server import Server
from ..violation import Blocked, Violation

AREA = Area("VER", "client_versions", "Releases of the official SDK")
VERSIONS = (
    "0.3.0",
    "0.4.1",
    "0.6.0",
    "0.7.0",
    "0.9.0",
    "0.14.0",
    "0.16.1",
    "0.18.2",
    "0.22.7",
    "0.24.1",
    "0.25.0",
    "0.30.4",
    "0.36.0",
    "0.38.0",
)
"""Releases in the order of their ids: a new one is added at the end, whatever its version is."""
FEATURES = (Feature.CONNECT, Feature.TRAIN, Feature.SAMPLE, Feature.SAVE, Feature.MANAGE)
"""Features in the order of their ids."""
FIRST_NUMBER = 101
NUMBERS_PER_VERSION = 10
CONTRACTS = {
    Feature.CONNECT: ("create_session",),
    Feature.TRAIN: ("create_model", "get_info", "forward_backward", "optim_step"),
    Feature.SAMPLE: ("create_sampling_session", "asample", "SampleResponse"),
    Feature.SAVE: ("save_weights", "save_weights_for_sampler", "load_weights"),
    Feature.MANAGE: ("get_server_capabilities", "list_training_runs", "get_training_run", "delete_checkpoint"),
}


def number_of(version: str, feature: Feature) -> int:
    """Return the number of the requirement on a release and a feature."""
    return FIRST_NUMBER + NUMBERS_PER_VERSION * VERSIONS.index(version) + FEATURES.index(feature)


def id_of(version: str, feature: Feature) -> str:
    """Return the id of the requirement on a release and a feature."""
    return f"{AREA.prefix}-{number_of(version, feature):03}"


async def _client_of(server: Server, version: str) -> OfficialClient:
    async def create() -> OfficialClient:
        return OfficialClient(server, version)

    return await server.share(f"official SDK {version}", create)


def _make_test(version: str, feature: Feature) -> Test:
    async def connect(server: Server) -> None:
        sdk = await _client_of(server, version)
        await sdk.connect()

    async def use(server: Server) -> None:
        sdk = await _client_of(server, version)
        try:
            await sdk.connect()
        except Violation as error:
            raise Blocked(f"SDK {version} does not connect: {error}", error.exchange) from error
        await run_steps(sdk, STEPS[feature])

    return connect if feature is Feature.CONNECT else use


def _sentence(version: str, feature: Feature) -> str:
    ability = "connect and open a session" if feature is Feature.CONNECT else feature.value
    return f"The official SDK {version} can {ability}."


for _version in VERSIONS:
    for _feature in FEATURES:
        AREA.may(
            number_of(_version, _feature),
            sentence=_sentence(_version, _feature),
            contract=CONTRACTS[_feature],
            needs=() if _feature is Feature.CONNECT else (id_of(_version, Feature.CONNECT),),
            remedy=f"See which request of SDK {_version} fails, and answer it as in the contract of wire {_version}.",
        )(_make_test(_version, _feature))
