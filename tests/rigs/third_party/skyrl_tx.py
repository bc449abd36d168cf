"""The server skyrl-tx 0.3.0: JSON both ways."""

from __future__ import annotations

from tests.rigs.third_party.peer import Peer

SKYRL_TX = Peer("skyrl-tx", "0.3.0", module="tx.tinker.api", official="0.16.1", is_protobuf=False)
