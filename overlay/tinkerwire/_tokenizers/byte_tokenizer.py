"""The tokenizer of the embedded server's models: a token for each byte, special tokens, and a chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .._extras import require_packages

START, END = "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '" + START + "' + message['role'] + '\n' + message['content'] + '" + END + "\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '" + START + "assistant\n' }}{% endif %}"
)
"""The template as jinja, for messages whose content is a text."""
SPECIAL_TOKENS: Mapping[str, int] = MappingProxyType(
    {
        START: 0xC0,
        END: 0xC1,
        "<|begin_of_text|>": 0xF5,
        "<|start_header_id|>": 0xF6,
        "<|end_header_id|>": 0xF7,
        "<|eot_id|>": 0xF8,
        "<|vision_start|>": 0xF9,
        "<|vision_end|>": 0xFA,
        "<|image_pad|>": 0xFB,
        "<|endoftext|>": 256,
    }
)
"""Special tokens by their text; all but the last are bytes that no UTF-8 text has."""
ADDED_TOKENS: Mapping[str, int] = MappingProxyType({"<think>": 0xFC, "</think>": 0xFD, **SPECIAL_TOKENS})
"""All tokens with a text of their own; like those of Qwen, the tokens of thinking are not special."""
TEXTS = {token: text for text, token in ADDED_TOKENS.items()}
_SPLIT = re.compile("(" + "|".join(map(re.escape, ADDED_TOKENS)) + ")")


class ByteTokenizer:
    r"""Text to tokens and back; of a Hugging Face tokenizer it has those methods, a chat template and save_pretrained.

    The special tokens are those of ChatML and of Llama 3; ``<think>`` and ``</think>`` are one token each, too. Such a
    text within a text becomes its token, as with tokenizers of Hugging Face.

    Example:
        >>> from tinkerwire.local import ByteTokenizer
        >>> tokenizer = ByteTokenizer()
        >>> tokens = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
        >>> tokenizer.decode(tokens)
        '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'
        >>> tokenizer.encode("<|im_end|>")
        [193]
    """

    name_or_path = "tinkerwire/bytes"
    bos_token: str | None = None
    bos_token_id: int | None = None
    eos_token = "<|endoftext|>"
    eos_token_id = 256
    vocab_size = 257
    chat_template = CHAT_TEMPLATE
    all_special_tokens: Sequence[str] = tuple(SPECIAL_TOKENS)
    all_special_ids: Sequence[int] = tuple(SPECIAL_TOKENS.values())

    def __len__(self) -> int:
        return self.vocab_size

    def encode(self, text: str, add_special_tokens: bool = True, *, split_special_tokens: bool = False) -> list[int]:
        """Return the tokens of a text.

        Args:
            text: the text.
            add_special_tokens: has no effect, because no text begins with a special token.
            split_special_tokens: encode a text such as ``<|im_end|>`` as its bytes, as for content from outside.
        """
        if split_special_tokens:
            return list(text.encode())
        tokens: list[int] = []
        for part in _SPLIT.split(text):
            tokens += [ADDED_TOKENS[part]] if part in ADDED_TOKENS else part.encode()
        return tokens

    def decode(self, token_ids: int | Sequence[int], skip_special_tokens: bool = False) -> str:
        """Return the text of tokens, without the end token; bytes that are not UTF-8 become U+FFFD.

        Args:
            token_ids: the tokens, or one token.
            skip_special_tokens: omit all special tokens.

        Raises:
            ValueError: a token is out of range.
        """
        tokens = [token_ids] if isinstance(token_ids, int) else token_ids
        for position, token in enumerate(tokens):
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"token_ids[{position}]: {token} is not one of the {self.vocab_size} tokens")
        return "".join(_decode(tokens, skip_special_tokens))

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> Any:
        """Return the token of a text that is one token, such as ``<|im_end|>``, else None; or a list of them."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        ids = self.encode(tokens)
        return ids[0] if len(ids) == 1 else None

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        return_dict: bool = False,
    ) -> Any:
        r"""Return the tokens of a conversation as ChatML: ``<|im_start|>ROLE\nCONTENT<|im_end|>\n`` for each message.

        Arguments and results are those of Hugging Face tokenizers, of which this template needs no others.

        Args:
            conversation: messages with ``role`` and ``content``; the content is a text, or a list of
                ``{"type": "text", "text": ...}``.
            add_generation_prompt: append the head of a message of the assistant.
            continue_final_message: omit the end of the last message, for the model to continue it.
            tokenize: return tokens; False returns the text.
            return_dict: return a dict with ``input_ids`` and ``attention_mask``.

        Raises:
            ValueError: a message lacks a part or has content other than text, or both options for the end are set.
        """
        if add_generation_prompt and continue_final_message:
            raise ValueError("apply_chat_template: pass add_generation_prompt or continue_final_message, not both")
        text = "".join(_render(index, message) for index, message in enumerate(conversation))
        if continue_final_message:
            text = text.removesuffix(f"{END}\n")
        if add_generation_prompt:
            text += f"{START}assistant\n"
        if not tokenize:
            return text
        tokens = self.encode(text)
        return {"input_ids": tokens, "attention_mask": [1] * len(tokens)} if return_dict else tokens

    @property
    def backend_tokenizer(self) -> Any:
        """A new ``tokenizers.Tokenizer`` with the same tokens; requires the package tokenizers."""
        require_packages("ByteTokenizer.backend_tokenizer", "tokenizers", "tokenizers")
        from tokenizers import Tokenizer  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        return Tokenizer.from_str(json.dumps(self._fast()))

    def save_pretrained(self, save_directory: str | Path) -> None:
        """Write a folder that ``transformers.AutoTokenizer.from_pretrained`` loads as this tokenizer.

        Programs that look for the tokenizer of a model under its name find it in a folder of that name.
        """
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": self.eos_token,
            "chat_template": self.chat_template,
        }
        for name, content in (("tokenizer.json", self._fast()), ("tokenizer_config.json", settings)):
            (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _fast(self) -> dict[str, Any]:
        """Return the same tokenizer as a byte-level BPE without merges, in the format of the package tokenizers."""
        levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        sides = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        added = [
            {"id": token, "content": text, "special": text in SPECIAL_TOKENS} | sides
            for text, token in ADDED_TOKENS.items()
        ]
        return {
            "version": "1.0",
            "added_tokens": sorted(added, key=lambda row: row["id"]),
            "pre_tokenizer": levels,
            "decoder": levels,
            "model": {
                "type": "BPE",
                "vocab": {TEXTS.get(byte) or _letter(byte): byte for byte in range(256)},
                "merges": [],
            },
        }


def _decode(tokens: Sequence[int], skip_special_tokens: bool) -> Iterator[str]:
    """Yield the texts between special tokens, and the texts of these."""
    run = bytearray()
    for token in tokens:
        text = TEXTS.get(token)
        if text is None:
            run.append(token)
        elif token != ByteTokenizer.eos_token_id and not (skip_special_tokens and text in SPECIAL_TOKENS):
            yield run.decode(errors="replace")
            run.clear()
            yield text
    yield run.decode(errors="replace")


def _render(index: int, message: Mapping[str, Any]) -> str:
    where = f"conversation[{index}]"
    if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
        raise ValueError(f"{where}: expected a dict with role and content, got {type(message).__name__}")
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(parts, Sequence) or not all(isinstance(part, Mapping) for part in parts):
        raise ValueError(f"{where}: content: expected a text or a list of parts, got {type(content).__name__}")
    for part in parts:
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise ValueError(f"{where}: content: this template only has parts of type text, got {part.get('type')!r}")
    if not isinstance(message["role"], str) or not message["role"]:
        raise ValueError(f"{where}: role: expected a text such as 'user', got {message['role']!r}")
    return f"{START}{message['role']}\n{''.join(part['text'] for part in parts)}{END}\n"


def _letter(byte: int) -> str:
    """Return the character of a byte in byte-level vocabularies: printable Latin-1 as is, others from U+0100 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in printed:
        return chr(byte)
    return chr(256 + sum(code not in printed for code in range(byte)))
