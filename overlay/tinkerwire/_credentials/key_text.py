"""Pattern of texts that look like a credential, for output about which nothing else is known."""

from __future__ import annotations

import re

KEY_TEXT = re.compile(r"\beyJ[\w-]+\.[\w.-]*|\b(?:tml|sk|pk|hf|glpat|xox[a-z]|gh[a-z])[-_][\w.-]{6,}|\bAKIA\w{12}")
"""Text that looks like an API key or a token."""
