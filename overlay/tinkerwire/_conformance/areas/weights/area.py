"""The area of weights, with a breakage that both of its parts cause."""

from ...requirement import Area, Breakage, Feature

AREA = Area("WGT", "weights", "Weights: saving and loading")
LOSES_WORK = Breakage("0.3.0", None, Feature.SAVE, "resumes from other weights than it saved, without an error")
