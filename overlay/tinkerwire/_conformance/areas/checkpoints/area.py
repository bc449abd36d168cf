"""The area of checkpoints."""

from ...requirement import Area

AREA = Area("CKP", "checkpoints", "Checkpoints: lists, lifetimes and deletion")
