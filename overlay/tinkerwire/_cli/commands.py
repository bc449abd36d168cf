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
    "billing": Row("billing", "Show usage and storage of the organization."),
    "chat": Row("chat", "Chat with a model in the terminal."),
    "checkpoint": Row("checkpoint", "List, download, publish and delete checkpoints."),
    "completion": Row("completion", "Print the completion script of a shell."),
    "config": Row("config", "Show the settings in use and their sources."),
    "conformance": Row("conformance", "Test a server of the Tinker API against the contract."),
    "demo": Row("demo", "Train, sample and reinforce a small model, offline."),
    "doctor": Row("doctor", "Check the connection to the server, step by step."),
    "gateway": Row("gateway", "Translate between clients and servers of different versions."),
    "model": Row("model", "List the models of the server."),
    "record": Row("record", "Record the requests and responses of a program."),
    "run": Row("run", "List training runs and show their details."),
    "sample": Row("sample", "Sample text from a model or a checkpoint."),
    "schema": Row("schema", "Export, compare and check contracts of the wire."),
    "serve": Row("serve", "Serve the Tinker API with small models that train."),
    "session": Row("session", "Export the traces of sessions."),
    "trace": Row("trace", "Show where the time of a traced run went."),
    "version": Row("version", "Show the version of this package."),
}
