"""Generators for Go, compiled by Debian's Go without modules: openapi-generator, and the models of quicktype."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.rigs.exports.material import Body, list_bodies
from tests.rigs.exports.step import Outcome, StepError, Workplace, run_program

FLOWS = Path(__file__).with_name("flows")
READER = """package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
PACKAGE)

func read(name string, value interface{}, text string) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		os.Exit(1)
	}
	var sent, got map[string]interface{}
	written, _ := json.Marshal(value)
	_ = json.Unmarshal(written, &got)
	_ = json.Unmarshal([]byte(text), &sent)
	if !contains(got, sent) {
		fmt.Fprintf(os.Stderr, "%s: read %s, sent %s", name, written, text)
		os.Exit(1)
	}
}

// contains reports whether a value has everything that was sent, but for nulls and empty lists.
func contains(got, sent interface{}) bool {
	switch sent := sent.(type) {
	case nil:
		return true
	case map[string]interface{}:
		fields, ok := got.(map[string]interface{})
		for key, item := range sent {
			ok = ok && contains(fields[key], item)
		}
		return ok
	case []interface{}:
		items, ok := got.([]interface{})
		ok = len(sent) == 0 || ok && len(items) == len(sent)
		for index := 0; ok && index < len(sent); index++ {
			ok = contains(items[index], sent[index])
		}
		return ok
	default:
		return reflect.DeepEqual(got, sent)
	}
}

func main() {
LINES
	fmt.Println("COUNT of COUNT")
}
"""


def prove_openapi_generator(work: Workplace, outcome: Outcome) -> None:
    """Generate a Go client from OpenAPI 3.0, compile it, read the captured bodies, and talk to the server."""
    folder = work.folder("openapi-generator-go")
    generator = str(work.python.with_name("openapi-generator-cli"))
    # Without the prefix, the constants of two enums with an equal value have equal names.
    options = ["--additional-properties", "enumClassPrefix=true,packageName=client"]
    command = [generator, "generate", "-g", "go", "-i", "../openapi-3.0.json", "-o", "src/client", *options]
    run_program(command, folder)
    outcome.generated = "yes"
    shutil.rmtree(folder / "src" / "client" / "test", ignore_errors=True)
    for name, source in (("talk", (FLOWS / "go_client.go").read_text()), ("read", _render_reader(work, "client."))):
        (folder / "src" / name).mkdir()
        (folder / "src" / name / "main.go").write_text(source)
        _build(work, folder, name)
    outcome.compiled = "go build"
    outcome.read = run_program(["./read"], folder).strip()
    outcome.talked = run_program(["./talk", work.server_url, work.version], folder).strip()


def prove_quicktype(work: Workplace, outcome: Outcome) -> None:
    """Generate models for Go, Rust and Swift from JSON Schema; compile those for Go and read the captured bodies."""
    folder = work.folder("quicktype")
    definitions = json.loads((work.documents / "schema.json").read_text())["$defs"]
    # It gives equal enums one name, and its Go readers of enums use the other too.
    names = [name for name, schema in definitions.items() if schema.get("type") == "object"]
    for language, options in (("go", ["--package", "main"]), ("rust", []), ("swift", [])):
        command = [work.npm_program("quicktype"), "-s", "schema", "--lang", language, *options]
        run_program(
            [*command, "-o", f"models.{language}", *(f"../schema.json#/$defs/{name}" for name in names)], folder
        )
    outcome.generated = "go, rust, swift"
    (folder / "src" / "read").mkdir(parents=True)
    shutil.copy(folder / "models.go", folder / "src" / "read" / "models.go")
    (folder / "src" / "read" / "main.go").write_text(_render_reader(work, ""))
    _build(work, folder, "read")
    outcome.compiled = "go build"
    outcome.read = run_program(["./read"], folder).strip()
    outcome.talked = "types only"


def _render_reader(work: Workplace, prefix: str) -> str:
    bodies, _ = list_bodies(work.version)
    # An object without fields has no type in openapi-generator.
    lines = [_render_read(body, prefix) for body in bodies if body.value]
    source = READER.replace("PACKAGE", '\t"client"\n' if prefix else "")
    return source.replace("LINES", "\n".join(lines)).replace("COUNT", str(len(bodies)))


def _render_read(body: Body, prefix: str) -> str:
    return f"\tread({json.dumps(body.type_name)}, &{prefix}{body.type_name}{{}}, {json.dumps(json.dumps(body.value))})"


def _build(work: Workplace, folder: Path, package: str) -> None:
    if work.go is None:
        raise StepError("go: Debian's package golang-1.19-go cannot be downloaded or unpacked")
    root = work.go / "usr" / "lib" / "go-1.19"
    env = {
        "GOROOT": str(root),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "GOPATH": f"{folder}:{work.go / 'usr' / 'share' / 'gocode'}",
        "GOCACHE": str(work.go / "cache"),
    }
    run_program([str(root / "bin" / "go"), "build", "-o", package, f"./src/{package}"], folder, env=env)
