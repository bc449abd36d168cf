"""Refactorings of a real release that leave the wire as it is: each must cause no report."""

from __future__ import annotations

from .changes import LORA, OPTIMIZER, RANK, SEARCH, SEED, T, lora
from .edited_release import Edit, replace
from .request_changes import AUTH, FUTURE, HOLDER, MODELS, REST, SERVICE, TRAINING, query

GET_INFO_CALL = '"/api/v1/get_info",\n            body'
HEALTH = '            "/api/v1/healthz",\n            cast_to=HealthResponse,\n'
FRONT = "\n\nclass "
CREATE = '"/api/v1/create_model"'
TTL = 'f"/api/v1/training_runs/{training_run_id}/checkpoints/{checkpoint_id}/ttl"'
IMAGE = f"{T}image_chunk.py"
DECODE = """        if isinstance(value, str):
            return base64.b64decode(value)
        return value
"""
ENCODE = '        return base64.b64encode(value).decode("utf-8")\n'
DUMP = 'model_dump(request, exclude_unset=False, exclude_none=True, mode="json")'


def path(new: str, top: str = "") -> Edit:
    """Return an edit of the path of the creation of a model, and of the top of its module."""
    return replace(MODELS, CREATE, new, (MODELS, FRONT, f"\n{top}{FRONT}"))


def moved(old: str, new: str, module: str, *, depth: int = 0) -> Edit:
    """Return an edit that moves a module of the types and leaves a re-export."""
    name = old.rpartition("/")[2].removesuffix(".py")
    return Edit(
        moved=((old, new),),
        added={old: f"from {module} import *\n", **({new.rpartition("/")[0] + "/__init__.py": ""} if depth else {})},
        replaced=((new, "from ..", "from ...") if depth else (new, name, name),),
    )


PARAMS = 'params = {"limit": limit, "offset": offset}'
REFACTORINGS: dict[str, Edit] = {
    "path by a constant": path("_CREATE", '_CREATE = "/api/v1/create_model"\n'),
    "path by a constant of another module": Edit(
        replaced=(
            (MODELS, CREATE, "paths.CREATE"),
            (MODELS, "from .._base_client", "from .. import _paths as paths\nfrom .._base_client"),
        ),
        added={"tinker/_paths.py": '_BASE = "/api/v1"\nCREATE = _BASE + "/create_model"\n'},
    ),
    "path by a sum": path('"/api/v1" + "/create_model"'),
    "path by a formatted string": path('f"{_BASE}/create_model"', '_BASE = "/api/v1"\n'),
    "path by format": path('"/api/{}/create_model".format("v1")'),
    "path by percent": path('"/api/%s/create_model" % "v1"'),
    "path by join": path('"/".join(("/api", "v1", "create_model"))'),
    "path by a function": path(
        '_path("create_model")', 'def _path(*parts: str) -> str:\n    return "/".join(["/api/v1", *parts])\n'
    ),
    "path by a function with one part": path(
        '_path("create_model")', 'def _path(part: str) -> str:\n    return f"/api/v1/{part}"\n'
    ),
    "path by a lambda": path('_path("create_model")', '_path = lambda part: "/api/v1/" + part\n'),
    "path by an enum": path(
        "_Path.CREATE", 'from enum import Enum\n\n\nclass _Path(str, Enum):\n    CREATE = "/api/v1/create_model"\n'
    ),
    "path by a table": path('_PATHS["create"]', '_PATHS = {"create": "/api/v1/create_model"}\n'),
    "path by a constant of a class": path(
        "_Paths.CREATE", 'class _Paths:\n    BASE = "/api/v1"\n    CREATE = f"{BASE}/create_model"\n'
    ),
    "path by a template": path(
        'string.Template("/api/$version/create_model").substitute(version="v1")', "import string\n"
    ),
    "path by posixpath": path('posixpath.join("/api/v1", "create_model")', "import posixpath\n"),
    "path by pathlib": path('str(PurePosixPath("/api/v1") / "create_model")', "from pathlib import PurePosixPath\n"),
    "path by replace": path('"/api/v0/create_model".replace("v0", "v1")'),
    "path by a field of a record": path(
        '_Spec(path="/api/v1/create_model").path',
        'from dataclasses import dataclass\n\n\n@dataclass\nclass _Spec:\n    path: str = "/api/v1/other"\n',
    ),
    "path by a table of records": path(
        '_SPECS["create"].path',
        'from collections import namedtuple\n_Spec = namedtuple("_Spec", "method path")\n'
        '_SPECS = {"create": _Spec("POST", "/api/v1/create_model")}\n',
    ),
    "path in parts": replace(
        REST, TTL, 'f"/api/v1/training_runs/{training_run_id}" f"/checkpoints/{checkpoint_id}" + "/ttl"'
    ),
    "path with quoted variables": replace(
        REST,
        TTL,
        TTL.replace("{checkpoint_id}", "{quote(checkpoint_id)}"),
        (REST, "annotations\n", "annotations\nfrom urllib.parse import quote\n"),
    ),
    "path in a variable": replace(
        REST,
        f"                    await client.put(\n                        {TTL}",
        f"                    target = {TTL}\n                    await client.put(\n                        target",
    ),
    "request through a helper": replace(
        SERVICE,
        f"        return await self._get(\n{HEALTH}        )",
        '        return await self._read("healthz", HealthResponse)\n\n'
        "    async def _read(self, name, kind):\n"
        '        return await self._get(f"/api/v1/{name}", cast_to=kind)',
    ),
    "request through a helper of the module": replace(
        SERVICE,
        f"        return await self._get(\n{HEALTH}        )",
        '        return await _read(self._get, "/api/v1/healthz", HealthResponse)',
        (
            SERVICE,
            FRONT,
            "\n\nasync def _read(send, path, kind):\n    return await send(path, cast_to=kind)\n\n\nclass ",
        ),
    ),
    "private methods of the client renamed": Edit(
        everywhere=(
            ("self._post", "self._send_post"),
            ("self._get(", "self._send_get("),
            ("self._get =", "self._send_get ="),
        )
    ),
    "request by client.request": replace(
        SERVICE, f"self._get(\n{HEALTH}        )", f'self._client.request("GET",\n{HEALTH}        )'
    ),
    "query by dict": query("params = dict(limit=limit, offset=offset)"),
    "query by a spread": query('params = {**{"limit": limit}, "offset": offset}'),
    "query by update": query("params: dict[str, object] = {}\nparams.update(limit=limit, offset=offset)"),
    "query by stores": query('params: dict[str, object] = {}\nparams["limit"] = limit\nparams["offset"] = offset'),
    "query by a union": query('params = {"limit": limit} | {"offset": offset}'),
    "query in another order": query('params = {"offset": offset, "limit": limit}'),
    "query by a function": query(
        "params = _page(limit, offset)",
        'def _page(limit: int, offset: int) -> dict[str, object]:\n    return {"limit": limit, "offset": offset}\n',
    ),
    "query without empty values": query(
        f"{PARAMS}\nparams = {{key: value for key, value in params.items() if value is not None}}"
    ),
    "query by constants": query("params = {_LIMIT: limit, _OFFSET: offset}", '_LIMIT, _OFFSET = "limit", "offset"\n'),
    "query by the fields of a record": query(
        "params = _Page(limit, offset)._asdict()",
        "from typing import NamedTuple\n\n\nclass _Page(NamedTuple):\n    limit: int\n    offset: int\n",
    ),
    "query by asdict": query(
        "params = dataclasses.asdict(_Page(limit, offset))",
        "import dataclasses\n\n\n@dataclasses.dataclass\nclass _Page:\n    limit: int\n    offset: int\n",
    ),
    "query by a field that is set": query(
        'page = _Page(limit)\npage.offset = offset\nparams = {"limit": page.limit, "offset": page.offset}',
        "import dataclasses\n\n\n@dataclasses.dataclass\nclass _Page:\n    limit: int\n    offset: int = 0\n",
    ),
    "query by zip": query('params = dict(zip(("limit", "offset"), (limit, offset)))'),
    "query by fromkeys": query(
        'params = dict.fromkeys(("limit", "offset"))\nparams["limit"] = limit\nparams["offset"] = offset'
    ),
    "header by a constant": replace(
        FUTURE,
        '"X-Tinker-Request-Type":',
        "_TYPE_HEADER:",
        (FUTURE, FRONT, '\n\n_TYPE_HEADER = "X-Tinker-Request-Type"\n\n\nclass '),
    ),
    "value of a header by a constant": replace(
        FUTURE,
        '["Accept"] = "application/x-protobuf"',
        '["Accept"] = _PROTOBUF',
        (FUTURE, FRONT, '\n\n_PROTOBUF = "application/" + "x-protobuf"\n\n\nclass '),
    ),
    "value of a header in a variable": replace(
        FUTURE,
        '            headers["Accept"] = "application/x-protobuf"',
        '            accepted = "application/x-protobuf"\n            headers["Accept"] = accepted',
    ),
    "header by update": replace(
        FUTURE, 'headers["Accept"] = "application/x-protobuf"', 'headers.update({"Accept": "application/x-protobuf"})'
    ),
    "header in another case": replace(FUTURE, '"X-Tinker-Request-Type"', '"x-tinker-request-type"'),
    "header of authentication by a constant": replace(
        AUTH,
        'request.headers["X-API-Key"]',
        "request.headers[_KEY]",
        (AUTH, FRONT, '\n\n_KEY = "X-API-Key"\n\n\nclass '),
    ),
    "header of a response by a variable": replace(
        "tinker/_base_client.py",
        'response.headers.get("x-deprecation-note")',
        'read.get("x-deprecation-note")',
        ("tinker/_base_client.py", "    note = read", "    read = response.headers\n    note = read"),
    ),
    "timeout by a constant": replace(
        HOLDER,
        '"timeout": 30}',
        '"timeout": _CANCEL_SECONDS}',
        (HOLDER, FRONT, "\n\n_CANCEL_SECONDS = 15 * 2\n\n\nclass "),
    ),
    "timeout by float": replace(HOLDER, '"timeout": 30}', '"timeout": float("30")}'),
    "timeout by timedelta": replace(
        HOLDER,
        '"timeout": 30}',
        '"timeout": timedelta(minutes=0.5).total_seconds()}',
        (HOLDER, FRONT, "\n\nfrom datetime import timedelta\n\n\nclass "),
    ),
    "timeout of a caller by a constant": replace(
        FUTURE, "timeout=45,", "timeout=_POLL_SECONDS,", (FUTURE, FRONT, "\n\n_POLL_SECONDS = 45.0\n\n\nclass ")
    ),
    "default timeout in parts": replace(
        "tinker/_constants.py",
        "timeout=60, connect=5.0",
        "connect=5, timeout=_ONE_MINUTE",
        ("tinker/_constants.py", "import httpx\n", "import httpx\n\n_ONE_MINUTE = 60.0\n"),
    ),
    "body in a variable": replace(
        MODELS,
        f"        return await self._post(\n            {CREATE},\n            body={DUMP}",
        f"        body = {DUMP}\n        return await self._post(\n            {CREATE},\n            body=body",
    ),
    "body by a helper": replace(
        MODELS, DUMP, "_write(request)", (MODELS, FRONT, f"\n\ndef _write(request):\n    return {DUMP}\n\n\nclass ")
    ),
    "body without default options": replace(MODELS, "exclude_unset=False, ", ""),
    "options by a mapping": replace(TRAINING, "make_request_options(extra_headers=headers)", '{"headers": headers}'),
    "fields in another order": lora(f"    train_mlp: bool = True\n{RANK}", old=RANK),
    "default by not": lora("    train_mlp: bool = not False\n", old="    train_mlp: bool = True\n"),
    "default by a function that makes a field": lora(
        "    seed: Optional[int] = _optional(None)\n",
        "from pydantic import Field\n\n\ndef _optional(value, **more):\n    return Field(default=value, **more)\n",
        SEED,
    ),
    "private attribute of a model": lora(
        f"{RANK}    _cache: dict = PrivateAttr(default_factory=dict)\n", "from pydantic import PrivateAttr\n"
    ),
    "class variable and methods": lora(
        f"    LIMIT: ClassVar[int] = 3\n\n    def double(self) -> int:\n        return self.rank * 2\n\n{RANK}",
        "from typing import ClassVar\n",
    ),
    "private field of a dataclass": replace(
        f"{T}sampled_sequence.py", "    _tokens_list:", "    _spare: int = 0\n    _tokens_list:"
    ),
    "docstrings and comments": lora(f'    # The rank.\n{RANK}    """Another text."""\n'),
    "values of a Literal in another order": replace(f"{T}severity.py", '"DEBUG", "INFO"', '"INFO", "DEBUG"'),
    "members of a union in another order": replace(
        OPTIMIZER, "AdamParams | SerializeAsAny[OptimParamsBase]", "SerializeAsAny[OptimParamsBase] | AdamParams"
    ),
    "union written with Union": replace(
        OPTIMIZER,
        "AdamParams | SerializeAsAny[OptimParamsBase]",
        "Union[AdamParams, SerializeAsAny[OptimParamsBase]]",
        (OPTIMIZER, "from pydantic", "from typing import Union\n\nfrom pydantic"),
    ),
    "optional written with a bar": lora("    seed: int | None = None\n", old=SEED),
    "default written with Field": lora(
        "    seed: Optional[int] = Field(default=None)\n", "from pydantic import Field\n", SEED
    ),
    "default by a constant": lora("    seed: Optional[int] = _SEED\n", "_SEED = None\n", SEED),
    "private alias of a type": lora("    rank: _Rank\n", "_Rank = int\n"),
    "alias as a type statement": replace(f"{T}model_id.py", "ModelID: TypeAlias = str", "type ModelID = str"),
    "alias as a NewType": replace(
        f"{T}model_id.py", "ModelID: TypeAlias = str", 'from typing import NewType\nModelID = NewType("ModelID", str)'
    ),
    "limits in Annotated": replace(
        SEARCH,
        "limit: int = Field(default=50, ge=1, le=200)",
        "limit: Annotated[int, Field(ge=1, le=200)] = 50",
        (SEARCH, "from pydantic", "from typing import Annotated\n\nfrom pydantic"),
    ),
    "limits by constants": replace(
        SEARCH, "ge=1, le=200", "ge=1, le=_MOST", (SEARCH, FRONT, "\n\n_MOST = 2 * 100\n\n\nclass ")
    ),
    "limits by a mapping": replace(
        SEARCH, "ge=1, le=200", "**_PAGE", (SEARCH, FRONT, "\n\n_PAGE = dict(ge=1, le=200)\n\n\nclass ")
    ),
    "limits by annotated_types": replace(
        SEARCH,
        "limit: int = Field(default=50, ge=1, le=200)",
        "limit: Annotated[int, Ge(1), Le(200)] = 50",
        (SEARCH, "from pydantic", "from typing import Annotated\n\nfrom annotated_types import Ge, Le\nfrom pydantic"),
    ),
    "imports of typing by a short name": lora("    seed: t.Optional[int] = None\n", "import typing as t\n", SEED),
    "annotation as text": lora('    rank: "int"\n'),
    "names in a serializer": Edit(
        replaced=(
            (f"{T}image_chunk.py", "def serialize_data(self, value: bytes)", "def _write(self, content: bytes)"),
            (f"{T}image_chunk.py", "b64encode(value)", "b64encode(content)"),
        )
    ),
    "validator by a helper": replace(
        IMAGE,
        DECODE,
        "        return _decode(value)\n",
        (
            IMAGE,
            FRONT,
            "\n\ndef _decode(text):\n    if isinstance(text, str):\n        return base64.b64decode(text)\n"
            f"    return text\n{FRONT}",
        ),
    ),
    "validator with another style": replace(
        IMAGE, "        return value\n", "        else:\n            return value\n"
    ),
    "serializer by a helper of another module": Edit(
        replaced=(
            (IMAGE, ENCODE, "        return _coding.encode(value)\n"),
            (IMAGE, "from .._models", "from .. import _coding\nfrom .._models"),
        ),
        added={
            "tinker/_coding.py": "from base64 import b64encode\n\n\ndef encode(data):\n"
            "    return b64encode(data).decode('utf-8')\n"
        },
    ),
    "serializer with a variable": replace(
        IMAGE, ENCODE, '        text = base64.b64encode(value)\n        return text.decode("utf-8")\n'
    ),
    "serializer by a method": replace(
        f"{T}optim_step_request.py",
        "        data = handler(self)\n",
        "        return self._write(handler(self))\n\n    def _write(self, data):\n",
    ),
    "generic base without a field": replace(
        LORA,
        "class LoraConfig(StrictBase):",
        "class LoraConfig(StrictBase, _Named):",
        (LORA, "\n\nclass ", "\n\nclass _Named:\n    pass\n\n\nclass "),
    ),
    "types moved to a private package": Edit(
        moved=((LORA, "tinker/_wire/lora.py"),),
        added={"tinker/_wire/__init__.py": "", LORA: "from .._wire.lora import LoraConfig as LoraConfig\n"},
    ),
    "alias moved to a private module": Edit(
        moved=((f"{T}model_id.py", "tinker/_ids.py"),),
        added={f"{T}model_id.py": "from .._ids import ModelID as ModelID\n"},
    ),
    "enum moved and re-exported by a star": Edit(
        moved=((f"{T}request_error_category.py", "tinker/_errors.py"),),
        added={f"{T}request_error_category.py": "from .._errors import *\n"},
    ),
    "resources moved": Edit(
        moved=((MODELS, "tinker/_impl/models.py"),),
        added={
            "tinker/_impl/__init__.py": "",
            MODELS: "from .._impl.models import AsyncModelsResource as AsyncModelsResource\n",
        },
    ),
    "private response renamed": Edit(everywhere=(("_SessionTraceExportPollResponse", "_TracePoll"),)),
    "protobuf module in parts": Edit(
        everywhere=(
            (
                "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(",
                "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(b'' + ",
            ),
        )
    ),
    "unused code added": Edit(
        added={"tinker/lib/unused.py": "import os\n\n\ndef get(url: str) -> str:\n    return os.path.join(url, 'x')\n"}
    ),
    "tests changed": Edit(
        added={
            "tinker/lib/more_test.py": 'async def test(client):\n    await client.get("/api/v1/no", cast_to=object)\n'
        }
    ),
}
