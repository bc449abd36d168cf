"""The tokenizer of the embedded server's models: one token a byte of UTF-8, and one for the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class ByteTokenizer:
    """Text to tokens and back; of a Hugging Face tokenizer it has those methods, and save_pretrained."""

    name_or_path = "tinkerwire/bytes"
    eos_token = "<|endoftext|>"
    eos_token_id = 256
    vocab_size = 257

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the tokens of a text; ``add_special_tokens`` has no effect."""
        return list(text.encode())

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Return the text of tokens, without the end token; bytes that are not UTF-8 become U+FFFD.

        Raises:
            ValueError: a token is out of range.
        """
        for position, token in enumerate(token_ids):
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"token_ids[{position}]: {token} is not one of the {self.vocab_size} tokens")
        return bytes(token for token in token_ids if token != self.eos_token_id).decode(errors="replace")

    def save_pretrained(self, save_directory: str | Path) -> None:
        """Write a folder that ``transformers.AutoTokenizer.from_pretrained`` loads as this tokenizer.

        Programs that look for the tokenizer of a model under its name find it in a folder of that name.
        """
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": self.eos_token}
        for name, content in (("tokenizer.json", self._fast()), ("tokenizer_config.json", settings)):
            (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _fast(self) -> dict[str, Any]:
        """Return the same tokenizer as a byte-level BPE without merges, in the format of the package tokenizers."""
        levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        end = {"id": self.eos_token_id, "content": self.eos_token, "special": True}
        sides = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        return {
            "version": "1.0",
            "added_tokens": [end | sides],
            "pre_tokenizer": levels,
            "decoder": levels,
            "model": {"type": "BPE", "vocab": {_letter(byte): byte for byte in range(256)}, "merges": []},
        }


def _letter(byte: int) -> str:
    """Return the character of a byte in byte-level vocabularies: printable Latin-1 as is, others from U+0100 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in printed:
        return chr(byte)
    return chr(256 + sum(code not in printed for code in range(byte)))
