"""Generators for TypeScript: each client is compiled with strict checks, and its flow runs in node."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.rigs.exports.material import Body, list_bodies
from tests.rigs.exports.step import Outcome, Workplace, run_program

FLOWS = Path(__file__).with_name("flows")
COMPILER_OPTIONS = {
    "strict": True,
    "target": "ES2022",
    "lib": ["ES2022", "DOM", "DOM.Iterable"],
    "module": "node16",
    "moduleResolution": "node16",
    "types": ["node"],
    "skipLibCheck": True,
    "outDir": "js",
}


def prove_typescript(tool: str, work: Workplace, outcome: Outcome) -> None:
    """Generate a client with one of TOOLS, compile it, read the captured bodies, and talk to the server."""
    folder = work.folder(tool)
    GENERATORS[tool](work, folder)
    outcome.generated = "yes"
    bodies, _ = list_bodies(work.version)
    (folder / "read.ts").write_text(render_reader(tool, bodies), encoding="utf-8")
    shutil.copy(FLOWS / "flow.ts", folder / "flow.ts")
    shutil.copy(FLOWS / f"{tool}.ts", folder / "talk.ts")
    config = {"compilerOptions": COMPILER_OPTIONS, "include": ["*.ts", "generated/**/*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    run_program([work.npm_program("tsc"), "-p", "tsconfig.json"], folder)
    outcome.compiled = "tsc --strict"
    outcome.read = run_program(["node", "js/read.js"], folder).strip()
    outcome.talked = run_program(["node", "js/talk.js", work.server_url, work.version], folder).strip()


def render_reader(tool: str, bodies: list[Body]) -> str:
    """Render a module whose compilation checks each body against its type, and that reads each body if it can."""
    imports, checks = READERS[tool]
    lines = [line.replace("NAMES", ", ".join(sorted({body.type_name for body in bodies}))) for line in imports]
    lines += ["const count = (read: unknown, sent: unknown): void => {"]
    lines += ["  const [left, right] = [read, sent].map((value) => JSON.stringify(sorted(value)));"]
    lines += ["  if (left !== right) throw new Error(`read ${left}, sent ${right}`);", "};"]
    lines += ["const sorted = (value: unknown): unknown =>"]
    lines += ["  Array.isArray(value) ? value.map(sorted) : value === null || typeof value !== 'object' ? value :"]
    lines += ["  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)"]
    lines += ["    .sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]));"]
    # An object without fields has no reader in typescript-fetch.
    for index, body in enumerate(body for body in bodies if body.value):
        text = json.dumps(body.value)
        lines += [line.format(index=index, name=body.type_name, text=text) for line in checks]
    lines += [f"console.log('{len(bodies)} of {len(bodies)}');"]
    return "\n".join(lines) + "\n"


def _openapi_typescript(work: Workplace, folder: Path) -> None:
    (folder / "generated").mkdir()
    # By default, it requires what has a default, also in requests.
    options = ["--default-non-nullable=false", "-o", "generated/schema.ts"]
    run_program([work.npm_program("openapi-typescript"), "../openapi.json", *options], folder)


def _hey_api(work: Workplace, folder: Path) -> None:
    plugins = ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk", "zod"]
    run_program(
        [work.npm_program("openapi-ts"), "-i", "../openapi.json", "-o", "generated", "-p", *plugins],
        folder,
    )


def _orval(work: Workplace, folder: Path) -> None:
    options = ["--input", "../openapi.json", "--output", "generated/client.ts", "--client", "fetch"]
    run_program([work.npm_program("orval"), *options], folder)


def _typescript_fetch(work: Workplace, folder: Path) -> None:
    generator = str(work.python.with_name("openapi-generator-cli"))
    # Without the prefix, the parameters of get_billing_usage have the name of a schema.
    options = ["--additional-properties", "prefixParameterInterfaces=true"]
    run_program(
        [generator, "generate", "-g", "typescript-fetch", "-i", "../openapi.json", "-o", "generated", *options], folder
    )


GENERATORS: Mapping[str, Callable[[Workplace, Path], None]] = {
    "openapi-typescript": _openapi_typescript,
    "hey-api": _hey_api,
    "orval": _orval,
    "typescript-fetch": _typescript_fetch,
}
READERS: Mapping[str, tuple[list[str], list[str]]] = {
    "openapi-typescript": (
        ["import type { components } from './generated/schema';"],
        ["const body{index}: components['schemas']['{name}'] = {text};", "count(body{index}, {text});"],
    ),
    "hey-api": (
        ["import type { NAMES } from './generated';", "import * as zod from './generated/zod.gen';"],
        ["const body{index}: {name} = {text};", "count(zod.z{name}.parse(body{index}), zod.z{name}.parse({text}));"],
    ),
    "orval": (
        ["import type { NAMES } from './generated/client';"],
        ["const body{index}: {name} = {text};", "count(body{index}, {text});"],
    ),
    "typescript-fetch": (
        ["import * as models from './generated/models';"],
        ["count(models.{name}ToJSON(models.{name}FromJSON({text})), {text});"],
    ),
}
