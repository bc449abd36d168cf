"""Names and texts that Python, the templates or the base use themselves do not break the generated code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.generated_package import run_python
from tinkerwire_codegen.cli import main

pytest.importorskip("datamodel_code_generator", reason="generation needs Python 3.11")

SCHEMA = Path(__file__).parents[3] / "schema"
FAMILY = r'''
paths:
  /api/v1/odd/{from}/{class}:
    post:
      operationId: odd
      tags: [odd]
      summary: 'Says "yes", \d and three quotes """.'
      description: x.
      x-since: 0.16.0
      parameters:
        - {name: from, in: path, required: true, description: x., schema: {type: string}}
        - {name: class, in: path, required: true, description: x., schema: {type: string}, x-multi-segment: true}
        - {name: import, in: query, description: x., schema: {type: string}}
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Odd'}}}
      responses:
        '200':
          description: x.
          content: {application/json: {schema: {$ref: '#/components/schemas/OddAnswer'}}}
        default: {$ref: '#/components/responses/Failed'}
components:
  schemas:
    Odd:
      description: 'Has "quotes", \d, """ and ümlauts ✓ and ends in "quotes"'
      x-since: 0.16.0
      type: object
      additionalProperties: false
      required: [field, list]
      properties:
        field: {type: string, description: 'Doc with """ and \d and "'}
        field_validator: {type: string, default: 'a"b\c', description: x.}
        matches: {type: string, pattern: '^a\d"$', default: 'a1"', description: x.}
        list: {type: array, items: {type: string}, minItems: 1, description: x.}
        str: {type: string, default: x, description: x.}
        int: {type: integer, default: 3, maximum: 9, description: x.}
        float: {type: number, default: 0.5, description: x.}
        datetime: {type: string, format: date-time, description: x.}
        dict: {type: object, additionalProperties: {type: integer}, default: {}, description: x.}
        from-here: {type: [string, 'null'], description: x.}
        1st: {type: integer, description: x.}
        None: {type: boolean, default: false, description: x.}
        self: {type: string, default: s, description: x.}
        Any: {type: string, default: s, description: x.}
        UNSET: {type: string, description: x.}
        _private: {type: string, default: x, description: x.}
        extra_fields: {type: string, default: x, description: x.}
        tree: {$ref: '#/components/schemas/Tree', description: x.}
        mix: {$ref: '#/components/schemas/Mix', description: x.}
        blob: {type: string, contentEncoding: base64, description: x.}
        numbers: {type: array, items: {type: number}, x-array: float32, description: x.}
    Tree:
      description: x.
      x-since: 0.16.0
      type: object
      properties:
        branches: {type: array, items: {$ref: '#/components/schemas/Tree'}, default: [], description: x.}
        parent:
          description: x.
          anyOf: [{$ref: '#/components/schemas/Tree'}, {type: 'null'}]
          default: null
    Mix:
      description: 'Mixed """ \d.'
      x-since: 0.16.0
      anyOf:
        - {type: string}
        - {$ref: '#/components/schemas/Tree'}
        - {type: array, items: {$ref: '#/components/schemas/Tree'}}
    OddAnswer:
      description: x.
      x-since: 0.16.0
      type: object
      properties:
        extra_fields: {type: string, default: z, description: x.}
        mix: {$ref: '#/components/schemas/Mix', description: x.}
'''
PROGRAM = """
from datetime import datetime, timezone
import numpy as np
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.api.odd import odd
from tinkerwire_generated.models import Odd, OddAnswer, Tree

converter = Converter()
tree = Tree(branches=[Tree(), Tree(branches=[Tree()])], parent=Tree())
model = Odd(
    field_="f", list=["a"], datetime=datetime.now(timezone.utc), dict={"a": 1}, from_here=None, field_1st=4,
    tree=tree, mix=[tree], blob=b"x", numbers=np.ones(2, np.float32), extra_fields_="q", matches_='a2"',
)
text = converter.encode(model)
assert converter.decode(text, Odd) == model
wire = converter.structure(converter.unstructure(model), Odd)
print(sorted(converter.unstructure(Odd(field_="f", list=["a"]))))
request = odd("a/b", "c/d", body=model, import_="x").encode(converter)
print(request.path, request.query)
for mix in ("s", {"branches": []}, [{"parent": {}}]):
    print(converter.structure({"mix": mix, "extra_fields": "w", "new": 1}, OddAnswer))
for mix in (4, [4], {"branches": "abc"}):
    try:
        converter.structure({"mix": mix}, OddAnswer)
    except ValueError as error:
        print(error)
print(odd.__doc__)
print(Odd.__doc__.splitlines()[0])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a package from the contract with the family of difficult names added."""
    folder = tmp_path_factory.mktemp("odd")
    schema = Path(shutil.copytree(SCHEMA, folder / "schema"))
    (schema / "odd.yaml").write_text(FAMILY, encoding="utf-8")
    head = (schema / "openapi.yaml").read_text(encoding="utf-8")
    head = head.replace("x-families: [", "x-families: [odd, ").replace("tags:\n", "tags:\n  - {name: odd}\n", 1)
    (schema / "openapi.yaml").write_text(head, encoding="utf-8")
    assert main(["generate", "--schema", str(schema), "--out", str(folder)]) == 0
    return folder


def test_difficult_names_work_from_end_to_end(package: Path) -> None:
    """Only Python names of fields change; recursive and mixed types convert, and texts stay as they are."""
    output = run_python(PROGRAM, package).splitlines()
    keys = ["Any", "None", "_private", "dict", "extra_fields", "field", "field_validator", "float", "int", "list"]
    assert output[0] == str([*keys, "matches", "self", "str"])
    assert output[1] == "/api/v1/odd/a%2Fb/c/d (('import', 'x'),)"
    assert output[2] == "OddAnswer(extra_fields={'new': 1}, extra_fields_='w', mix='s')"
    assert output[3] == "OddAnswer(extra_fields={'new': 1}, extra_fields_='w', mix=Tree())"
    assert output[4] == "OddAnswer(extra_fields={'new': 1}, extra_fields_='w', mix=[Tree(parent=Tree())])"
    assert output[5].startswith("expected one of str, Tree, list[") and output[5].endswith("@ OddAnswer.mix")
    assert output[6].startswith("expected one of str, Tree, list[")
    assert output[7] == "expected array, got string @ OddAnswer.mix.branches"
    assert output[8] == 'Says "yes", \\d and three quotes """.'
    assert output[9] == 'Has "quotes", \\d, """ and ümlauts ✓ and ends in "quotes"'


def test_generated_code_passes_mypy_strict(package: Path) -> None:
    """The generated code passes mypy --strict."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(package / "tinkerwire_generated")]
    run = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
