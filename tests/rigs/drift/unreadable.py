"""Parts of a release that cannot be read without running it, and the places where they must be reported."""

from __future__ import annotations

from .changes import LORA, T, lora
from .edited_release import Edit, replace
from .request_changes import CAST, FUTURE, HOLDER, MODELS, REST, method, query, returned

UNREADABLE: dict[str, tuple[Edit, str]] = {
    "file that is not Python": (replace(LORA, "class LoraConfig", "class class LoraConfig"), f"{LORA}:8"),
    "path from the environment": (
        method(returned(f'_get(os.environ["FRESH"], {CAST}'), top="import os\n"),
        MODELS,
    ),
    "path of a helper from the environment": (
        method(
            'return await self._request(os.environ["FRESH"])',
            more=f"    async def _request(self, path):\n        return await self._get(path, {CAST}\n\n",
            top="import os\n",
        ),
        MODELS,
    ),
    "field made by a function of several statements": (
        lora(
            "    rank: int = _limited(ge=1)\n",
            "from pydantic import Field\n\n\ndef _limited(**limits):\n    limits['le'] = 9\n"
            "    return Field(**limits)\n",
        ),
        LORA,
    ),
    "default from a function outside": (lora("    rank: int = read()\n", "from external import read\n"), LORA),
    "body from a function outside": (
        replace(REST, 'body={"ttl_seconds": ttl_seconds}', "body={**external.make()}"),
        REST,
    ),
    "timeout from the environment": (
        replace(HOLDER, '"timeout": 30}', "\"timeout\": float(os.environ['SECONDS'])}"),
        HOLDER,
    ),
    "timeout of all requests from outside": (
        replace("tinker/_constants.py", "timeout=60", "timeout=external.seconds()"),
        "tinker/_constants.py",
    ),
    "query from a function outside": (
        query("params = external.make(limit, offset)", top="import external\n"),
        "tinker/lib/public_interfaces/rest_client.py",
    ),
    "field of a record that another function sets": (
        query(
            'page = _Page(limit, offset)\n_move(page)\nparams = {"limit": page.limit, "offset": page.offset}',
            top="import dataclasses\n\n\n@dataclasses.dataclass\nclass _Page:\n    limit: int\n    offset: int\n\n\n"
            "def _move(page):\n    page.offset = 3\n",
        ),
        REST,
    ),
    "header with a computed name": (
        replace(FUTURE, '"X-Tinker-Request-Type":', "os.environ['NAME']:"),
        FUTURE,
    ),
    "alias generator of its own": (
        lora(
            "    model_config = ConfigDict(alias_generator=lambda name: name[::-1])\n    rank: int\n",
            "from pydantic import ConfigDict\n",
        ),
        LORA,
    ),
    "limit from the environment": (
        lora("    rank: int = Field(ge=int(os.environ['N']))\n", "import os\nfrom pydantic import Field\n"),
        LORA,
    ),
    "limits from a function outside": (
        lora("    rank: int = Field(**external.limits())\n", "import external\nfrom pydantic import Field\n"),
        LORA,
    ),
    "configuration from a function outside": (
        lora("    model_config = external.make()\n    rank: int\n", "import external\n"),
        LORA,
    ),
    "model made by a function": (
        lora("    rank: int\n", "from pydantic import create_model\nMade = create_model('Made')\n"),
        LORA,
    ),
    "class with a base from outside": (
        Edit(added={f"{T}other.py": "import external\n\n\nclass Other(external.Model):\n    a: int\n"}),
        f"{T}other.py:4",
    ),
    "type that is not defined": (lora("    rank: Missing\n"), LORA),
    "type made by a call": (lora("    rank: make_type(3)\n", "from external import make_type\n"), LORA),
    "value of a Literal by a call": (
        replace(f"{T}severity.py", '"CRITICAL"]', '"CRITICAL", make()]'),
        f"{T}severity.py",
    ),
    "class that is its own base": (replace(LORA, "LoraConfig(StrictBase)", "LoraConfig(LoraConfig, StrictBase)"), LORA),
    "messages without a descriptor": (
        Edit(added={"tinker/proto/more_pb2.py": "DESCRIPTOR = load()\n"}),
        "tinker/proto/more_pb2.py:1",
    ),
}
