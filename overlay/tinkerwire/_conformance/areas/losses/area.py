"""The area of losses, and what its requirements share."""

from ...requirement import Area, Breakage, Feature

AREA = Area("LOS", "losses", "Losses: cross_entropy, reinforcement learning and custom losses")
WRONG_NUMBERS = Breakage("0.3.0", None, Feature.TRAIN, "trains with wrong numbers, without an error")
