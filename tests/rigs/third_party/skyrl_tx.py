"""The server skyrl-tx 0.3.0, which sends and receives JSON only."""

from __future__ import annotations

from tests.rigs.third_party.server import ThirdPartyServer

SKYRL_TX = ThirdPartyServer("skyrl-tx", "0.3.0", module="tx.tinker.api", official="0.16.1", is_protobuf=False)
