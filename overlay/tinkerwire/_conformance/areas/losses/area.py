"""The area of losses, and what its requirements share."""

from ...requirement import Area

AREA = Area("LOS", "losses", "Losses: cross_entropy, reinforcement learning and custom losses")
