"""A small invented SDK release in the style of the official one, and the contract that describes it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

VERSION = "0.7.0"

MODELS = """
import pydantic
from pydantic import ConfigDict

class StrictBase(pydantic.BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

class BaseModel(pydantic.BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
"""
TYPES = """
from __future__ import annotations
import base64
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Dict, List, Optional, Union
from pydantic import Field, field_serializer
from typing_extensions import Literal, NotRequired, TypeAlias, TypedDict
from .._models import BaseModel, StrictBase
from .._kinds import Color as Colour

JobID: TypeAlias = str
Mode = Literal["fast", "slow"]

class Level(str, Enum):
    Low = "low"
    High = "high"

class Knobs(StrictBase):
    heat: float = 0.5
    steps: int = 10 * 10
    tags: List[str] = Field(default_factory=list)

class TextPart(StrictBase):
    text: str
    type: Literal["text"] = "text"

class ImagePart(StrictBase):
    data: bytes
    type: Literal["image"] = "image"

    @field_serializer("data")
    def write(self, value: bytes) -> str:
        return base64.b64encode(value).decode()

Part: TypeAlias = Annotated[Union[TextPart, ImagePart], Field(discriminator="type")]

class StartRequest(StrictBase):
    parts: list[Part]
    mode: Mode
    colour: Colour
    knobs: Optional[Knobs] = None
    level: Level = Level.Low
    extra: dict[str, Any] | None = None
    default_knobs: Knobs = Knobs()

class StartResponse(BaseModel):
    job_id: JobID
    made_at: datetime
    pair: Optional[tuple[int, float]] = None

class StopResponse(BaseModel):
    type: Literal["stop"] = "stop"

class OldParams(TypedDict):
    name: str
    size: NotRequired[int]

@dataclass
class Fast:
    part: Part
    more: Dict[str, "Fast"] = field(default_factory=dict)

FutureRetrieveResponse = Union[StartResponse, StopResponse]
"""
KINDS = 'from typing import Literal\nColor = Literal["red", "green"]\n'
RESOURCES = """
from typing import Any, cast
from .. import types
from ..types import StartRequest, StartResponse
from .._compat import model_dump, NoneType

class AsyncJobs:
    async def start(self, *, request: StartRequest) -> StartResponse:
        return await self._post(
            "/api/v1/start", body=model_dump(request, exclude_unset=True, mode="json"), cast_to=StartResponse
        )

    async def stop(self, job_id: types.JobID, *, why: str | None = None) -> None:
        body = {"why": why}
        await self._post(f"/api/v1/jobs/{job_id}/stop", body=body, cast_to=NoneType)

    def look(self, limit: int = 20, colour: str | None = None):
        async def send():
            params: dict[str, object] = {"limit": limit}
            if colour is not None:
                params["colour"] = colour
            return await client.get("/api/v1/jobs", options={"params": params}, cast_to=cast(Any, types.StartResponse))

        return wait(types.StartResponse, request_type="Start")
"""
PB2 = "from google.protobuf import descriptor_pool\nDESCRIPTOR = descriptor_pool.Default().AddSerializedFile({!r})\n"

CONTRACT = """
openapi: 3.1.0
info: {title: Made up, version: 0.7.0}
x-families: [jobs]
"""
JOBS = """
paths:
  /api/v1/start:
    post:
      operationId: start
      x-since: 0.5.0
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/StartRequest'}}}}
      responses:
        '200':
          description: Started.
          content: {application/json: {schema: {$ref: '#/components/schemas/StartResponse'}}}
  /api/v1/jobs:
    get:
      operationId: look
      x-since: 0.5.0
      parameters:
        - {name: limit, in: query, schema: {type: integer, default: 20}}
        - {name: colour, in: query, schema: {type: string}}
      responses:
        '200': {description: Them., content: {application/json: {schema: {$ref: '#/components/schemas/StartResponse'}}}}
  /api/v1/jobs/{id}/stop:
    post:
      operationId: stop
      x-since: 0.5.0
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/StopBody'}}}}
      responses: {'200': {description: Stopped.}}
components:
  schemas:
    StopBody:
      x-undeclared: true
      type: object
      properties: {why: {type: [string, 'null']}}
    JobID: {type: string}
    Mode: {type: string, enum: [fast, slow]}
    Level: {type: string, enum: [low, high]}
    Color: {x-undeclared: true, type: string, enum: [red, green]}
    Knobs:
      type: object
      additionalProperties: false
      properties:
        heat: {type: number, default: 0.5}
        steps: {type: integer, default: 100}
        tags: {type: array, items: {type: string}, default: []}
    TextPart:
      type: object
      additionalProperties: false
      required: [text]
      properties: {text: {type: string}, type: {type: string, const: text, default: text}}
    ImagePart:
      type: object
      additionalProperties: false
      required: [data]
      properties:
        data: {type: string, contentEncoding: base64}
        type: {type: string, const: image, default: image}
    Part:
      anyOf: [{$ref: '#/components/schemas/TextPart'}, {$ref: '#/components/schemas/ImagePart'}]
      discriminator: {propertyName: type}
    StartRequest:
      type: object
      additionalProperties: false
      required: [parts, mode, colour]
      properties:
        parts: {type: array, items: {$ref: '#/components/schemas/Part'}}
        mode: {$ref: '#/components/schemas/Mode'}
        colour: {$ref: '#/components/schemas/Color'}
        knobs: {anyOf: [{$ref: '#/components/schemas/Knobs'}, {type: 'null'}], default: null}
        level: {$ref: '#/components/schemas/Level', default: low}
        extra: {anyOf: [{type: object, additionalProperties: true}, {type: 'null'}], default: null}
        default_knobs: {$ref: '#/components/schemas/Knobs', default: {heat: 0.5, steps: 100, tags: []}}
    StartResponse:
      type: object
      required: [job_id, made_at]
      properties:
        job_id: {$ref: '#/components/schemas/JobID'}
        made_at: {type: string, format: date-time}
        pair:
          anyOf:
            - {type: array, prefixItems: [{type: integer}, {type: number}], items: false}
            - {type: 'null'}
          default: null
    StopResponse:
      type: object
      properties: {type: {type: string, const: stop, default: stop}}
    OldParams:
      type: object
      required: [name]
      properties: {name: {type: string}, size: {type: integer}}
    FutureRetrieveResponse:
      anyOf: [{$ref: '#/components/schemas/StartResponse'}, {$ref: '#/components/schemas/StopResponse'}]
"""
PROTO = """
syntax = "proto3";
package tinker_public;

// A point.
message Point {  // since: 0.5.0
  // Its place.
  int64 x = 1;
  // Its name.
  optional string name = 2;
}
"""


def descriptor() -> FileDescriptorProto:
    """Return the compiled descriptor of PROTO."""
    file = FileDescriptorProto(name="tinker_public.proto", package="tinker_public", syntax="proto3")
    point = file.message_type.add(name="Point")
    label = FieldDescriptorProto.LABEL_OPTIONAL
    point.field.add(name="x", number=1, type=FieldDescriptorProto.TYPE_INT64, label=label)
    point.field.add(
        name="name", number=2, type=FieldDescriptorProto.TYPE_STRING, label=label, proto3_optional=True, oneof_index=0
    )
    point.oneof_decl.add(name="_name")
    return file


def sources(proto: FileDescriptorProto | None = None) -> dict[str, str]:
    """Return the files of the release by path."""
    serialized = (proto or descriptor()).SerializeToString()
    return {
        "tinker/__init__.py": "from . import types\n",
        "tinker/_version.py": f'__version__ = "{VERSION}"\n',
        "tinker/_models.py": MODELS,
        "tinker/_compat.py": "NoneType = type(None)\n",
        "tinker/_kinds.py": KINDS,
        "tinker/types/__init__.py": "from .all import *\n" + _exports(),
        "tinker/types/all.py": TYPES,
        "tinker/resources/__init__.py": "",
        "tinker/resources/jobs.py": RESOURCES,
        "tinker/proto/tinker_public_pb2.py": PB2.format(serialized),
        f"tinker-{VERSION}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tinker\nVersion: {VERSION}\n",
    }


def _exports() -> str:
    names = ("JobID", "StartRequest", "StartResponse")
    return "".join(f"from .all import {name} as {name}\n" for name in names)


def write_wheel(path: Path, files: dict[str, str]) -> Path:
    """Write the files as a wheel."""
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def write_folder(path: Path, files: dict[str, str]) -> Path:
    """Write the files as a folder."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def write_contract(path: Path) -> Path:
    """Write the contract of the release as a folder."""
    files = {"openapi.yaml": CONTRACT, "jobs.yaml": JOBS, "tinker_public.proto": PROTO}
    return write_folder(path, files)
