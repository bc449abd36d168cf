"""Single changes of the wire in a copy of a real release: types, fields and what models do with them."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from .edited_release import Edit, Found, replace

T, R = "tinker/types/", "tinker/resources/"
LORA, OPTIMIZER, SEARCH = f"{T}lora_config.py", f"{T}optimizer.py", f"{T}session_search_request.py"
RANK = "    rank: int\n"
SEED = "    seed: Optional[int] = None\n"
MLP = "    train_mlp: bool = True\n"
LORA_TOP = "from typing import Optional\n"


def lora(new: str, imports: str = "", old: str = RANK) -> Edit:
    """Return an edit of a field of LoraConfig, and of the imports of its module."""
    return replace(LORA, old, new, (LORA, LORA_TOP, f"{LORA_TOP}{imports}\n"))


def message(file: FileDescriptorProto, name: str = "DmelChunk") -> Any:
    """Return a message of a descriptor."""
    return next(candidate for candidate in file.message_type if candidate.name == name)


def repackage(file: FileDescriptorProto) -> None:
    """Move all messages of a descriptor to another package."""
    for candidate in file.message_type:
        for field in [*candidate.field, *(f for nested in candidate.nested_type for f in nested.field)]:
            field.type_name = field.type_name.replace(".tinker_public.", ".tinker_v2.")
    file.package = "tinker_v2"


def rank(kind: str = "constraint", change: str = "added", where: str = "LoraConfig.rank") -> set[Found]:
    """Return the expected change of the rank."""
    return {(change, kind, where)}


FIELD = {("added", "field", "LoraConfig")}
CHANGES: dict[str, tuple[Edit, set[Found]]] = {
    "field added": (lora(f"{RANK}    alpha: float | None = None\n"), FIELD),
    "required field added": (lora(f"{RANK}    alpha: float\n"), FIELD),
    "field removed": (lora("", old=MLP), {("removed", "field", "LoraConfig")}),
    "field retyped": (lora("    rank: float\n"), rank("type", "changed")),
    "field made nullable": (lora("    rank: int | None\n"), rank("type", "changed")),
    "field made optional": (lora("    rank: int = 8\n"), rank("required", "changed")),
    "default changed": (
        lora("    train_mlp: bool = False\n", old=MLP),
        rank("default", "changed", "LoraConfig.train_mlp"),
    ),
    "default by a constant": (
        lora("    seed: Optional[int] = _SEED\n", "_SEED = 40 + 2\n", SEED),
        rank("default", "changed", "LoraConfig.seed"),
    ),
    "default by a factory": (
        lora("    seed: Optional[int] = Field(default_factory=lambda: 7)\n", "from pydantic import Field\n", SEED),
        rank("default", "changed", "LoraConfig.seed"),
    ),
    "default by Field": (
        lora("    seed: Optional[int] = Field(3)\n", "from pydantic import Field\n", SEED),
        rank("default", "changed", "LoraConfig.seed"),
    ),
    "default of a model with arguments": (
        replace(SEARCH, "SearchOwner = OwnSearchOwner()", "SearchOwner = OwnSearchOwner(type='other')"),
        {("changed", "default", "SessionSearchRequest.owner")},
    ),
    "strictness": (
        replace(LORA, "(StrictBase)", "(StrictBase, extra='ignore')"),
        {("changed", "strictness", "LoraConfig")},
    ),
    "strictness by configuration": (
        lora(f"    model_config = dict(extra='allow')\n{RANK}"),
        {("changed", "strictness", "LoraConfig")},
    ),
    "strictness by a mapping": (
        lora(f"    model_config = {{'extra': 'allow'}}\n{RANK}"),
        {("changed", "strictness", "LoraConfig")},
    ),
    "strictness by a constant": (
        lora(
            f"    model_config = _CONFIG\n{RANK}",
            "from pydantic import ConfigDict\n_CONFIG = ConfigDict(extra='allow')\n",
        ),
        {("changed", "strictness", "LoraConfig")},
    ),
    "enum value added": (
        replace(f"{T}request_error_category.py", "    User = auto()\n", "    User = auto()\n    Network = auto()\n"),
        {("added", "value", "RequestErrorCategory")},
    ),
    "enum value by a constant": (
        replace(
            f"{T}request_error_category.py",
            "    User = auto()\n",
            "    User = auto()\n    Net = _NET\n",
            (f"{T}request_error_category.py", "__all__", '_NET = "net" + "work"\n\n__all__'),
        ),
        {("added", "value", "RequestErrorCategory")},
    ),
    "enum values by a tuple": (
        replace(f"{T}request_error_category.py", "    User = auto()\n", "    User, Net = auto(), 'net'\n"),
        {("added", "value", "RequestErrorCategory")},
    ),
    "enum value changed": (
        replace(f"{T}request_error_category.py", "User = auto()", 'User = "person"'),
        {("added", "value", "RequestErrorCategory"), ("removed", "value", "RequestErrorCategory")},
    ),
    "literal value added": (
        replace(f"{T}severity.py", '"CRITICAL"]', '"CRITICAL", "FATAL"]'),
        {("added", "value", "Severity")},
    ),
    "literal value removed": (replace(f"{T}severity.py", ', "CRITICAL"', ""), {("removed", "value", "Severity")}),
    "nested literal": (
        replace(
            f"{T}severity.py",
            '"CRITICAL"]',
            '"CRITICAL", _More]',
            (f"{T}severity.py", "Severity: T", '_More = Literal["FATAL"]\nSeverity: T'),
        ),
        {("added", "value", "Severity")},
    ),
    "type statement with another type": (
        replace(f"{T}model_id.py", "ModelID: TypeAlias = str", "type ModelID = int"),
        {("changed", "target", "ModelID")},
    ),
    "NewType of another type": (
        replace(
            f"{T}model_id.py",
            "ModelID: TypeAlias = str",
            'from typing import NewType\nModelID = NewType("ModelID", int)',
        ),
        {("changed", "target", "ModelID")},
    ),
    "field of a NewType": (
        lora("    rank: _Rank\n", 'from typing import NewType\n_Rank = NewType("_Rank", str)\n'),
        rank("type", "changed"),
    ),
    "field of a type statement": (lora("    rank: _Rank\n", "type _Rank = str\n"), rank("type", "changed")),
    "type added": (
        replace(LORA, "class LoraConfig", "class LoraTarget(StrictBase):\n    name: str\n\n\nclass LoraConfig"),
        {("added", "type", "types")},
    ),
    "typed dict added": (
        lora(RANK, "from typing import TypedDict\nclass LoraTarget(TypedDict):\n    name: str\n"),
        {("added", "type", "types")},
    ),
    "type added in a private module": (
        Edit(added={"tinker/_extra.py": "from ._models import StrictBase\nclass Extra(StrictBase):\n    a: int\n"}),
        {("added", "type", "types")},
    ),
    "field of a generic base": (
        replace(
            LORA,
            "class LoraConfig(StrictBase):",
            'A = TypeVar("A")\nclass _Sized(StrictBase, Generic[A]):\n    size: A\n\n\nclass LoraConfig(_Sized[int]):',
            (LORA, LORA_TOP, "from typing import Generic, Optional, TypeVar\n"),
        ),
        {("added", "type", "types"), ("added", "field", "LoraConfig")},
    ),
    "field of a base with type parameters": (
        replace(
            LORA,
            "class LoraConfig(StrictBase):",
            "class _Sized[A](StrictBase):\n    size: list[A]\n\n\nclass LoraConfig(_Sized[int]):",
        ),
        {("added", "type", "types"), ("added", "field", "LoraConfig")},
    ),
    "field of a mixin": (
        replace(
            LORA,
            "class LoraConfig(StrictBase):",
            "class _Mixin(StrictBase):\n    size: int = 1\n\n\nclass LoraConfig(_Mixin):",
        ),
        {("added", "type", "types"), ("added", "field", "LoraConfig")},
    ),
    "field of a dataclass added": (
        replace(f"{T}sampled_sequence.py", "    sequence_id: str\n", "    sequence_id: str\n    score: float\n"),
        {("added", "dataclass field", "SampledSequence.score")},
    ),
    "field of a dataclass retyped": (
        replace(f"{T}sampled_sequence.py", "    sequence_id: str\n", "    sequence_id: int\n"),
        {("changed", "dataclass field", "SampledSequence.sequence_id")},
    ),
    "member of a union": (
        replace(OPTIMIZER, "OptimParams = AdamParams | ", "OptimParams = AdamParams | DimuonOptimizerConfig | "),
        {("added", "member", "OptimParams")},
    ),
    "alias of a field": (
        lora("    rank: int = Field(alias='r')\n", "from pydantic import Field\n"),
        {("added", "field", "LoraConfig"), ("removed", "field", "LoraConfig")},
    ),
    "serialization alias": (
        lora("    rank: int = Field(serialization_alias='r')\n", "from pydantic import Field\n"),
        {("added", "field", "LoraConfig"), ("removed", "field", "LoraConfig")},
    ),
    "validation alias": (
        lora("    rank: int = Field(validation_alias='r')\n", "from pydantic import Field\n"),
        rank("accepted names"),
    ),
    "accepted name added": (
        replace(f"{T}optim_step_request.py", '"optimizer_params")', '"optimizer_params", "params")'),
        {("changed", "accepted names", "OptimStepRequest.optim_params")},
    ),
    "alias generator": (
        replace(
            f"{T}cursor.py",
            "    offset: int\n",
            "    model_config = ConfigDict(alias_generator=to_camel)\n    offset: int\n",
            (
                f"{T}cursor.py",
                "from ",
                "from pydantic import ConfigDict\nfrom pydantic.alias_generators import to_camel\nfrom ",
            ),
        ),
        {("added", "field", "Cursor"), ("removed", "field", "Cursor")},
    ),
    "computed field": (
        lora(
            f"    @computed_field\n    @property\n    def double(self) -> int:\n        return self.rank * 2\n\n{RANK}",
            "from pydantic import computed_field\n",
        ),
        rank("computed field", where="LoraConfig.double"),
    ),
    "excluded field": (
        lora("    rank: int = Field(exclude=True)\n", "from pydantic import Field\n"),
        rank("excluded field"),
    ),
    "serializer of a field": (
        lora(
            f"    @field_serializer('rank')\n    def write(self, rank):\n        return str(rank)\n\n{RANK}",
            "from pydantic import field_serializer\n",
        ),
        rank("serializer"),
    ),
    "serializer in an annotation": (
        lora(
            "    rank: Annotated[int, PlainSerializer(str)]\n",
            "from typing import Annotated\nfrom pydantic import PlainSerializer\n",
        ),
        rank("serializer"),
    ),
    "serializer changed": (
        replace(f"{T}image_chunk.py", "b64encode(value)", "b64encode(value[:8])"),
        {("changed", "serializer", "ImageChunk.data")},
    ),
    "serializer removed": (
        replace(f"{T}image_chunk.py", '    @field_serializer("data")\n', ""),
        {("removed", "serializer", "ImageChunk.data"), ("removed", "encoding", "ImageChunk.data")},
    ),
    "serializer of a model changed": (
        replace(f"{T}optim_step_request.py", 'data["adam_params"] = params', 'data["adam"] = params'),
        {("changed", "serializer", "OptimStepRequest")},
    ),
    "validator added": (
        lora(
            f"    @field_validator('rank')\n    @classmethod\n    def check(cls, rank):\n        assert rank > 0\n"
            f"        return rank\n\n{RANK}",
            "from pydantic import field_validator\n",
        ),
        rank("validator"),
    ),
    "validator changed": (
        replace(f"{T}image_chunk.py", "b64decode(value)", "b32decode(value)"),
        {("changed", "validator", "ImageChunk.data")},
    ),
    "validator in an annotation": (
        lora(
            "    rank: Annotated[int, AfterValidator(_add)]\n",
            "from typing import Annotated\nfrom pydantic import AfterValidator\n"
            "def _add(value):\n    return value + 1\n",
        ),
        rank("validator"),
    ),
    "helper of a validator changed": (
        replace(
            f"{T}_pydantic_types/datum.py",
            "isinstance(value, list)",
            "isinstance(value, (list, tuple))",
        ),
        {("changed", "validator", "Datum")},
    ),
    "setting of a model": (
        lora(f"    model_config = ConfigDict(str_strip_whitespace=True)\n{RANK}", "from pydantic import ConfigDict\n"),
        rank("setting", where="LoraConfig.str_strip_whitespace"),
    ),
    "setting changed": (
        replace(OPTIMIZER, ", allow_inf_nan=False", ", allow_inf_nan=True"),
        {("changed", "setting", "DimuonParams.allow_inf_nan")},
    ),
    "minimum": (lora("    rank: int = Field(ge=1)\n", "from pydantic import Field\n"), rank()),
    "minimum by a constant": (
        lora("    rank: int = Field(ge=_LEAST)\n", "from pydantic import Field\n_LEAST = 2 * 2\n"),
        rank(),
    ),
    "minimum by a mapping": (
        lora("    rank: int = Field(**_LIMITS)\n", "from pydantic import Field\n_LIMITS = {'ge': 1}\n"),
        rank(),
    ),
    "minimum by a function that makes a field": (
        lora(
            "    rank: int = _limited(ge=1)\n",
            "from pydantic import Field\n\n\ndef _limited(**limits):\n    return Field(**limits)\n",
        ),
        rank(),
    ),
    "minimum by a partial function": (
        lora(
            "    rank: Annotated[int, _limited()]\n",
            "import functools\nfrom typing import Annotated\nfrom pydantic import Field\n"
            "_limited = functools.partial(Field, ge=1)\n",
        ),
        rank(),
    ),
    "maximum in Annotated": (
        lora("    rank: Annotated[int, Field(le=256)]\n", "from typing import Annotated\nfrom pydantic import Field\n"),
        rank(),
    ),
    "bound of annotated_types": (
        lora("    rank: Annotated[int, Gt(0)]\n", "from typing import Annotated\nfrom annotated_types import Gt\n"),
        rank(),
    ),
    "length of annotated_types": (
        replace(
            f"{T}session_search_cursor.py",
            "class SessionSearchCursor(",
            "from typing import Annotated\nfrom annotated_types import Len\n\n\nclass SessionSearchCursor(",
            (SEARCH, "project_ids: list[str] | None", "project_ids: Annotated[list[str], Len(1, 9)] | None"),
            (SEARCH, "from pydantic", "from typing import Annotated\nfrom annotated_types import Len\nfrom pydantic"),
        ),
        rank(where="SessionSearchRequest.project_ids"),
    ),
    "constrained type": (lora("    rank: conint(ge=1)\n", "from pydantic import conint\n"), rank()),
    "type with a limit in its name": (lora("    rank: PositiveInt\n", "from pydantic import PositiveInt\n"), rank()),
    "limit of an alias": (
        lora(
            "    rank: _Rank\n",
            "from typing import Annotated\nfrom pydantic import Field\n_Rank = Annotated[int, Field(ge=1)]\n",
        ),
        rank(),
    ),
    "limit of a NewType": (
        lora(
            "    rank: _Rank\n",
            "from typing import Annotated, NewType\nfrom pydantic import Field\n"
            "_Rank = NewType('_Rank', Annotated[int, Field(ge=1)])\n",
        ),
        rank(),
    ),
    "limit by a named field": (
        lora(
            "    rank: Annotated[int, _AtLeastOne]\n",
            "from typing import Annotated\nfrom pydantic import Field\n_AtLeastOne = Field(ge=1)\n",
        ),
        rank(),
    ),
    "pattern": (
        replace(
            SEARCH,
            'default=None, min_length=1)\n    """Case',
            'default=None, min_length=1, pattern=\'^a\')\n    """Case',
        ),
        rank(change="changed", where="SessionSearchRequest.display_name"),
    ),
    "limit changed": (replace(SEARCH, "le=200", "le=500"), rank(change="changed", where="SessionSearchRequest.limit")),
    "limit removed": (
        replace(SEARCH, ", ge=1, le=200", ""),
        rank(change="removed", where="SessionSearchRequest.limit"),
    ),
    "protobuf package": (
        Edit(proto=repackage),
        {("changed", "protobuf package", "tinker_public.proto")},
    ),
    "protobuf field deprecated": (
        Edit(proto=lambda file: setattr(message(file).field[0].options, "deprecated", True)),
        {("added", "protobuf options", "DmelChunk.dmel")},
    ),
    "protobuf name in JSON": (
        Edit(proto=lambda file: setattr(message(file).field[0], "json_name", "DMEL")),
        {("added", "protobuf options", "DmelChunk.dmel")},
    ),
    "protobuf service": (
        Edit(
            proto=lambda file: file.service.add(name="S").method.add(name="Go", input_type=".tinker_public.DmelChunk")
        ),
        {("added", "protobuf service", "S.Go")},
    ),
    "protobuf field added": (
        Edit(proto=lambda file: message(file).field.add(name="rate", number=9, type=5, label=1)),
        {("added", "protobuf field", "DmelChunk")},
    ),
    "protobuf field renumbered": (
        Edit(proto=lambda file: setattr(message(file).field[0], "number", 9)),
        {("changed", "protobuf number", "DmelChunk.dmel")},
    ),
}
