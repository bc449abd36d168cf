"""Limits and names of the graph of a custom loss, for the client that traces it and the server that checks it."""

from __future__ import annotations

import re

LOGPROBS = "logprobs"
MAX_INPUTS = 16
INPUT_NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}")
METRIC_NAME = re.compile(r"custom/[a-z0-9_./-]{1,64}:(sum|mean)")
GETATTR = "getattr"
"""The only builtin function of a graph; tracing records ``x.shape`` as a call of it."""
