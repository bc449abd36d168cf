"""The area of training, and the breakages that its requirements share."""

from ...requirement import Area, Breakage, Feature

AREA = Area("TRN", "training", "Training: forward, forward_backward and optim_step")
RAISES_ON_TRAINING = Breakage("0.3.0", None, Feature.TRAIN, "raises in place of the result")
