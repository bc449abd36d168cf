"""Commands of the command line: name, module that defines ``cli``, and summary.

A command is one module and one row. The module is loaded only when its command runs.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    module: str
    summary: str


COMMANDS: dict[str, Row] = {
    "auth": Row("auth", "Sign in and out, and check the credential."),
    "demo": Row("demo", "Train, sample and reinforce a small model, offline."),
    "serve": Row("serve", "Serve the Tinker API with small models that train."),
    "version": Row("version", "Show the version of this package."),
}
