"""Upload of a downloaded checkpoint to the Hugging Face Hub, as an adapter of PEFT."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import orjson

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models

from .._checkpoints.paths import parse_checkpoint_address
from .checkpoint_download import PEFT_CONFIG, PEFT_WEIGHTS

UNNEEDED = "checkpoint_complete"
CARD = "README.md"
CARD_PATH = re.compile(r"tinker://[^\s`]+")


@attrs.frozen(kw_only=True)
class HubTarget:
    """Target and options of an upload: the arguments of :meth:`ServiceClient.push_to_hub`."""

    repo_id: str | None
    private: bool
    revision: str | None
    commit_message: str | None
    create_pr: bool
    allow_patterns: list[str] | None
    ignore_patterns: list[str] | None
    add_model_card: bool


def check_login() -> None:
    """Raise TinkerError if the Hub does not accept the user's token."""
    # The package is not a dependency: only this part needs it.
    from huggingface_hub import HfApi  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    try:
        HfApi().whoami()
    except Exception as error:
        raise TinkerError(
            f"the Hugging Face Hub does not accept the login ({type(error).__name__}); run: hf auth login"
        ) from None


def upload(folder: Path, tinker_path: str, weights: models.WeightsInfoResponse, target: HubTarget) -> str:
    """Upload a folder with an adapter, and return the id of the repository.

    Raises:
        TinkerError: the folder does not have an adapter of PEFT, the repository has another checkpoint, or the Hub
            rejects the upload.
    """
    from huggingface_hub import HfApi  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    if not (folder / PEFT_CONFIG).exists() or not any((folder / name).exists() for name in PEFT_WEIGHTS):
        names = ", ".join(sorted(path.name for path in folder.iterdir()))[:200]
        raise TinkerError(
            f"{tinker_path} is not an adapter of PEFT: expected {PEFT_CONFIG} and {PEFT_WEIGHTS[0]}, got {names}"
        )
    _set_base_model(folder / PEFT_CONFIG, weights.base_model)
    address = parse_checkpoint_address(tinker_path)
    repo_id, revision = target.repo_id, target.revision
    if repo_id is None:
        repo_id = _sanitize(f"tinker-{weights.base_model.rpartition('/')[2]}-{address.training_run_id}")
        revision = revision or _sanitize(address.checkpoint_id.replace("/", "-"))
    if target.add_model_card and not (folder / CARD).exists():
        (folder / CARD).write_text(_make_card(repo_id, tinker_path, weights), encoding="utf-8")
    api = HfApi()
    ignored = target.ignore_patterns or []
    try:
        repo_id = str(api.create_repo(repo_id=repo_id, private=target.private, exist_ok=True).repo_id)
        if revision is not None and not target.create_pr:
            api.create_branch(repo_id=repo_id, branch=revision, exist_ok=True)
        other = _read_mark(api, repo_id, revision)
        if other not in (None, tinker_path):
            raise TinkerError(f"the repository {repo_id} has another checkpoint, {other}; choose another repository")
        api.upload_folder(
            folder_path=str(folder),
            repo_id=repo_id,
            revision=revision,
            commit_message=target.commit_message,
            create_pr=target.create_pr,
            allow_patterns=target.allow_patterns,
            ignore_patterns=ignored if target.allow_patterns else [*ignored, UNNEEDED],
        )
    except (OSError, ValueError) as error:
        # Errors of the Hub are OSErrors.
        raise TinkerError(f"the Hugging Face Hub rejects the upload to {repo_id}: {error}") from None
    return repo_id


def _set_base_model(file: Path, base_model: str) -> None:
    """Write the name of the base model into the configuration of an adapter, if the name is missing."""
    try:
        config: Any = orjson.loads(file.read_bytes())
    except ValueError:
        raise TinkerError(f"{file.name} of the checkpoint is not JSON") from None
    if isinstance(config, dict) and not isinstance(config.get("base_model_name_or_path"), str):
        config["base_model_name_or_path"] = base_model
        file.write_bytes(orjson.dumps(config, option=orjson.OPT_INDENT_2))


def _read_mark(api: Any, repo_id: str, revision: str | None) -> str | None:
    """Return the checkpoint that the model card of a repository names, if any."""
    try:
        card = api.hf_hub_download(repo_id=repo_id, filename=CARD, revision=revision)
        match = CARD_PATH.search(Path(card).read_text(encoding="utf-8", errors="ignore"))
    except (OSError, ValueError):
        return None
    return match[0] if match else None


def _make_card(repo_id: str, tinker_path: str, weights: models.WeightsInfoResponse) -> str:
    rank = f"- LoRA rank: {weights.lora_rank}\n" if weights.lora_rank is not None else ""
    return f"""---
base_model: {weights.base_model}
library_name: peft
tags:
- tinker
- peft
- lora
- base_model:adapter:{weights.base_model}
tinker_path: {tinker_path}
---

# LoRA adapter

This adapter was trained with the Tinker API and uploaded from `{tinker_path}`.

- Base model: {weights.base_model}
{rank}
```python
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("{repo_id}")
```
"""


def _sanitize(name: str) -> str:
    return re.sub(r"-{2,}", "-", re.sub(r"[^\w.-]", "-", name)).strip("-_.")
