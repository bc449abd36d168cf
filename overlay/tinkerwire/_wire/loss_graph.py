"""Limits and names of the graph of a custom loss, for the client that traces it and the server that checks it."""

from __future__ import annotations

import re

from tinkerwire_generated.constants import (
    CUSTOM_LOSS_FIRST_INPUT,
    CUSTOM_LOSS_INPUT_NAME,
    CUSTOM_LOSS_MAX_INPUTS,
    CUSTOM_LOSS_METRIC_NAME,
)

LOGPROBS = CUSTOM_LOSS_FIRST_INPUT
MAX_INPUTS = CUSTOM_LOSS_MAX_INPUTS
INPUT_NAME = re.compile(CUSTOM_LOSS_INPUT_NAME)
METRIC_NAME = re.compile(CUSTOM_LOSS_METRIC_NAME)
GETATTR = "getattr"
"""The only builtin function of a graph; tracing records ``x.shape`` as a call of it."""
