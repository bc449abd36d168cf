"""Messages by buf and protoc-gen-es: compiled, given the captured bodies, and sent to the server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.rigs.exports.material import PROTO, has_proto, list_bodies
from tests.rigs.exports.step import Outcome, Workplace, run_program
from tests.rigs.exports.typescript import COMPILER_OPTIONS

FLOW = Path(__file__).with_name("flows") / "buf.ts"
READER = """import { equals, fromBinary, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { ForwardBackwardRequestSchema as schema } from './generated/tinker_public_pb';

const bodies: JsonValue[] = BODIES;
for (const body of bodies) {
  const message = fromJson(schema, body);
  if (!equals(schema, message, fromBinary(schema, toBinary(schema, message)))) throw new Error(JSON.stringify(body));
}
console.log('COUNT of COUNT');
"""


def prove_buf(work: Workplace, outcome: Outcome) -> None:
    """Generate messages, compile them, read the captured messages, and train one datum with protobuf both ways."""
    if not has_proto(work.version):
        outcome.generated = "no protobuf in this version"
        return
    folder = work.folder("buf")
    shutil.copy(work.documents / PROTO, folder / PROTO)
    plugin = {"local": work.npm_program("protoc-gen-es"), "out": "generated", "opt": "target=ts"}
    (folder / "buf.gen.yaml").write_text(json.dumps({"version": "v2", "plugins": [plugin]}))
    run_program([work.npm_program("buf"), "generate", PROTO], folder)
    outcome.generated = "yes"
    _, bodies = list_bodies(work.version)
    reader = READER.replace("BODIES", json.dumps([body.value for body in bodies])).replace("COUNT", str(len(bodies)))
    (folder / "read.ts").write_text(reader)
    shutil.copy(FLOW, folder / "talk.ts")
    config = {"compilerOptions": COMPILER_OPTIONS, "include": ["*.ts", "generated/**/*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    run_program([work.npm_program("tsc"), "-p", "tsconfig.json"], folder)
    outcome.compiled = "tsc --strict"
    outcome.read = run_program(["node", "js/read.js"], folder).strip()
    outcome.talked = run_program(["node", "js/talk.js", work.server_url, work.version], folder).strip()
