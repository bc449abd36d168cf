"""Endpoint stubs from the contract's operations, by openapi-python-client with our endpoint templates."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import union_document

MULTI_SEGMENT = "multi-segment"
TEMPLATES = Path(__file__).parent / "templates" / "endpoints"
CONFIG = {
    "literal_enums": True,
    "content_type_overrides": {"application/x-protobuf": "application/octet-stream"},
    "post_hooks": [],
}


def generate_endpoints(document: dict[str, Any], work: Path) -> Path:
    """Generate the endpoint modules, one module per operation and one package per tag; return their folder."""
    source, config, output = work / "endpoints.json", work / "config.json", work / "endpoints"
    source.write_text(json.dumps(_simplify(union_document(document))))
    config.write_text(json.dumps(CONFIG))
    command = [
        sys.executable,
        "-m",
        "openapi_python_client",
        "generate",
        "--meta",
        "none",
        "--fail-on-warning",
    ]
    command += ["--path", str(source), "--config", str(config), "--output-path", str(output)]
    command += ["--custom-template-path", str(TEMPLATES)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
    if run.returncode:
        raise RuntimeError(f"openapi-python-client failed on the contract:\n{run.stdout}{run.stderr}")
    return output / "api"


def _simplify(document: dict[str, Any]) -> dict[str, Any]:
    """Remove what openapi-python-client cannot parse and the stubs do not need."""
    simplified = copy.deepcopy(document)
    for operation in (operation for item in simplified["paths"].values() for operation in item.values()):
        for parameter in operation.get("parameters", []):
            if parameter.get("x-multi-segment"):
                # Of a parameter, templates see little more than its example.
                parameter["schema"]["example"] = MULTI_SEGMENT
    for schema in simplified["components"]["schemas"].values():
        if schema.get("items") is False:
            schema["items"] = {}
    return simplified
