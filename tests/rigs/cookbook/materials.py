"""Local stand-ins for what recipes load from hubs: the byte tokenizer and small data sets.

Hubs are not reachable. transformers and datasets accept a folder of the same name in the working directory.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinkerwire._tokenizers.byte_tokenizer import ByteTokenizer

MODEL = "Qwen/Qwen3.5-9B-Base"
"""The default of the basic recipes, which look up its renderer by this name."""
COLOURS = ("red", "blue", "green", "white")
OBJECTS = ("cat", "dog", "hat", "cup", "box")
BOXED = " Provide a numerical answer without units, written inside \\boxed{}."
GSM8K_CARD = """---
configs:
- config_name: main
  data_files:
  - split: train
    path: train.jsonl
  - split: test
    path: test.jsonl
---
"""


def write_materials(folder: Path) -> None:
    """Write the stand-ins to a folder, the same in every run."""
    ByteTokenizer().save_pretrained(folder / MODEL)
    rng = random.Random(0)
    for split, count in (("train", 640), ("test", 128)):
        _write(folder / f"HuggingFaceH4/no_robots/{split}.jsonl", [_make_no_robots(rng, n) for n in range(count)])
    for split, count in (("train", 96), ("test", 16)):
        _write(folder / f"Anthropic/hh-rlhf/{split}.jsonl", [_make_preference(rng) for _ in range(count)])
    for split, count in (("train", 136), ("test", 8)):
        _write(folder / f"openai/gsm8k/{split}.jsonl", [_make_sum(rng) for _ in range(count)])
    (folder / "openai/gsm8k/README.md").write_text(GSM8K_CARD)
    _write(folder / "zwhe99/DeepMath-103K/train.jsonl", [_make_sum(rng) for _ in range(24)])
    _write(folder / "tangqiaoyu/ToolAlpaca/train.jsonl", [_make_instruction(rng) for _ in range(24)])
    _write(folder / "allenai/tulu-3-sft-mixture/train.jsonl", [{"messages": _make_chat(rng)} for _ in range(24)])
    # Output folder of generate_data of the recipe with rubrics.
    (folder / "tinker_cookbook/example_data").mkdir(parents=True, exist_ok=True)
    _write(folder / "conversations.jsonl", [{"messages": _make_chat(rng)} for _ in range(160)])
    # Replies in the right form with a random number: the recipe learns the right number by reinforcement.
    _write(folder / "boxed.jsonl", [{"messages": _make_guess(rng)} for _ in range(640)])


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _make_chat(rng: random.Random) -> list[dict[str, str]]:
    noun = rng.choice(OBJECTS)
    reply = f"It is the {rng.choice(COLOURS)} {noun}."
    return [{"role": "user", "content": f"Which {noun} is it?"}, {"role": "assistant", "content": reply}]


def _make_no_robots(rng: random.Random, number: int) -> dict[str, Any]:
    chat = _make_chat(rng)
    return {"prompt": chat[0]["content"], "prompt_id": str(number), "messages": chat, "category": "Open QA"}


def _make_preference(rng: random.Random) -> dict[str, str]:
    question, reply = (message["content"] for message in _make_chat(rng))
    prompt = f"\n\nHuman: {question}\n\nAssistant: "
    return {"chosen": prompt + reply, "rejected": f"{prompt}No."}


def _make_sum(rng: random.Random) -> dict[str, str]:
    a, b = rng.randint(0, 4), rng.randint(0, 4)
    return {"question": f"What is {a} + {b}?", "answer": f"{a} + {b} = {a + b}\n#### {a + b}"}


def _make_instruction(rng: random.Random) -> dict[str, str]:
    question, reply = (message["content"] for message in _make_chat(rng))
    return {"instruction": question, "output": reply}


def _make_guess(rng: random.Random) -> list[dict[str, str]]:
    question = _make_sum(rng)["question"] + BOXED
    return [{"role": "user", "content": question}, {"role": "assistant", "content": f"\\boxed{{{rng.randint(0, 8)}}}"}]
