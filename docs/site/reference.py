"""The pages of the reference: one directive of mkdocstrings for each public name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_origin

import click

import tinkerwire
import tinkerwire.auth
import tinkerwire.conformance
import tinkerwire.dropin
import tinkerwire.local
import tinkerwire.testing
import tinkerwire.training
import tinkerwire.types
from tinkerwire._cli.app import root
from tinkerwire._conformance.catalogue import load_areas
from tinkerwire._conformance.report.run_report import describe_breakage
from tinkerwire._conformance.requirement import Requirement
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models

CLIENTS = ("ServiceClient", "TrainingClient", "SamplingClient", "RestClient", "AdminClient")
FUTURES = ("APIFuture", "gather", "as_completed", "FutureState", "Progress", "WaitStatus")
FAMILIES = {
    "inputs": "Inputs of models and losses",
    "sampling": "Sampling",
    "training": "Training",
    "optimizers": "Optimizers",
    "weights": "Weights and checkpoints",
    "runs": "Training runs",
    "session": "Sessions",
    "search": "Search of sessions",
    "futures": "Futures",
    "custom_loss": "Custom losses",
    "params": "Options of endpoints",
    "auth": "Credentials and settings of clients",
    "admin": "Administration and billing",
    "service": "The server",
    "telemetry": "Telemetry",
    "errors": "Errors on the wire",
}
"""Families of the contract, in the order of the page of types."""


def create_pages() -> dict[str, str]:
    """Return the text of each page by its path below docs/."""
    public = [name for name in tinkerwire.__all__ if not name.startswith("__") and name not in models.__all__]
    values = {name: getattr(tinkerwire, name) for name in public}
    errors = [name for name, value in values.items() if is_class(value) and issubclass(value, TinkerError)]
    modules = [name for name, value in values.items() if inspect.ismodule(value)]
    listed = {*CLIENTS, *FUTURES, *errors, *modules}
    others = [name for name in public if name not in listed and not name.startswith("Backcompat")]
    return {
        "reference/clients.md": create_page("Clients", "The clients of `tinkerwire`.", values, CLIENTS),
        "reference/futures.md": create_page(
            "Futures", "Every operation returns an `APIFuture`, which is already running.", values, FUTURES
        ),
        "reference/settings.md": create_page(
            "Settings and other names",
            "The other names of `tinkerwire`. [Types](types.md) has the types.",
            values,
            others,
        ),
        "reference/error-classes.md": create_page(
            "Error classes", "All errors of the client. [Errors](errors.md) gives causes and ways out.", values, errors
        ),
        "reference/types.md": create_types_page(),
        "reference/local.md": create_module_page(tinkerwire.local),
        "reference/auth.md": create_module_page(tinkerwire.auth),
        "reference/dropin.md": create_module_page(tinkerwire.dropin),
        "reference/training.md": create_module_page(tinkerwire.training),
        "reference/testing.md": create_module_page(tinkerwire.testing),
        "reference/conformance.md": create_module_page(tinkerwire.conformance),
        "reference/requirements.md": create_requirements_page(),
        "reference/command-line.md": create_command_page(),
    }


def create_page(title: str, text: str, values: dict[str, Any], names: Any) -> str:
    """Return a page with the documentation of some names."""
    return "\n\n".join([f"# {title}", text, *(directive(values[name], name) for name in names)]) + "\n"


def is_class(value: Any) -> bool:
    """Return whether a value is a class; generic aliases are types to isinstance in Python 3.10."""
    return isinstance(value, type) and not get_origin(value)


def create_types_page() -> str:
    """Return the page of all types of the wire, by family."""
    parts = [
        "# Types",
        "The types of `tinkerwire.types`, by family of the contract. `tinkerwire` itself exports those that programs "
        'use most. "Wire" gives the wire versions that have a type or field.',
    ]
    for family, title in FAMILIES.items():
        parts.append(f"## {title}")
        names = [name for name in models.__all__ if models._FAMILIES.get(name) == family]
        parts += [directive_of(f"tinkerwire_generated.models.{family}.{name}", 3) for name in names]
        if family == "sampling":
            parts.append(directive_of("tinkerwire_base.list_array.TopkLogprobs", 3))
    return "\n\n".join(parts) + "\n"


def create_module_page(module: Any) -> str:
    """Return a page with a public module: its own documentation, then its names."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name not in ("annotations", "TYPE_CHECKING")
    ]
    parts = [f"# {module.__name__}", inspect.getdoc(module) or ""]
    for name in names:
        value = getattr(module, name)
        if module is not tinkerwire.local and vars(tinkerwire.local).get(name) is value:
            place = f"local.md#{value.__module__}.{value.__qualname__}"
            parts.append(f"## {name} {{#{name}}}\n\nSee [tinkerwire.local]({place}).")
        else:
            parts.append(directive(value, name, module.__name__))
    return "\n\n".join(parts) + "\n"


def directive(value: Any, name: str, module: str = "tinkerwire") -> str:
    """Return the directive for a public name: the place of its definition if it has one."""
    defined = is_class(value) or inspect.isfunction(value)
    if defined and value.__name__ == name:
        return directive_of(f"{value.__module__}.{value.__qualname__}", 2)
    return directive_of(f"{module}.{name}", 2)


def directive_of(path: str, level: int) -> str:
    """Return the directive for a path."""
    inherited = "true" if path.rpartition(".")[2] in CLIENTS else "false"
    return f"::: {path}\n    options: {{heading_level: {level}, inherited_members: {inherited}}}"


def create_requirements_page() -> str:
    """Return the page with all requirements of the conformance kit, by area."""
    areas = load_areas()
    count = sum(len(area.requirements) for area in areas)
    parts = [
        "# Requirements of servers",
        f"The {count} requirements that [`tinkerwire conformance`](../conformance.md) tests. The "
        "[levels](../conformance.md#levels) must, should and may give how much depends on one. The parts of the "
        "contract behind it are operations, their statuses, types and their fields.",
    ]
    for area in areas:
        parts += [f"## {area.title} {{#{area.name}}}", *map(describe_requirement, area.requirements)]
    return "\n\n".join(parts) + "\n"


def describe_requirement(requirement: Requirement) -> str:
    """Return the heading and the text of a requirement."""
    wire = f"{requirement.since} and later" if requirement.until is None else ""
    wire = wire or f"{requirement.since} to before {requirement.until}"
    rests_on = ", ".join(f"`{part}`" for part in requirement.contract)
    lines = [
        f"### {requirement.id} {{#{requirement.id}}}",
        f"**{requirement.level.value}** {escape(requirement.sentence)}",
        f"- Wire {wire}; contract: {rests_on}",
        f"- If it fails: {escape(requirement.remedy)}",
        *(f"- Breaks {escape(describe_breakage(breakage))}" for breakage in requirement.breaks),
    ]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])


def escape(text: str) -> str:
    """Return plain text as Markdown."""
    return re.sub(r"([\\`*_<>\[\]{}|])", r"\\\1", text)


def create_command_page() -> str:
    """Return the page with the help of every command of ``tinkerwire``."""
    parts = ["# Options of commands", "[Command line](../cli.md) describes the commands and their output."]
    top = click.Context(root, info_name="tinkerwire", terminal_width=78, **root.context_settings)
    for context in walk_commands(top):
        heading = "##" if context.parent is None or context.parent.parent is None else "###"
        parts += [f"{heading} {context.command_path}", f"```text\n{context.get_help()}\n```"]
    return "\n\n".join(parts) + "\n"


def walk_commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command, then those of its subcommands."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from walk_commands(click.Context(child, parent=context, info_name=name))
