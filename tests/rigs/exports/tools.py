"""All generators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tests.rigs.exports import go_clients, protobuf, python_clients, typescript
from tests.rigs.exports.step import Outcome, Workplace

TOOLS: Mapping[str, Callable[[Workplace, Outcome], None]] = {
    **{name: partial(typescript.prove_typescript, name) for name in typescript.GENERATORS},
    **{name: partial(python_clients.prove_python, name) for name in python_clients.GENERATORS},
    "quicktype": go_clients.prove_quicktype,
    "buf": protobuf.prove_buf,
    "openapi-generator-go": go_clients.prove_openapi_generator,
}
