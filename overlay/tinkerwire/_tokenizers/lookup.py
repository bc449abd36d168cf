"""Lookup of the tokenizer of a model, and its loading (``tinkerwire[tokenizers]``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .byte_tokenizer import ByteTokenizer

BYTES = "tinkerwire/byte"
"""Prefix of the names of the embedded server's models and their tokenizer."""
UNGATED_LLAMA_3 = "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"
"""The tokenizer of Llama 3 for those without access to the model's own files."""
ELSEWHERE = ("TML/", "thinkingmachines/")
"""Models whose tokenizers are not on the Hugging Face hub but in the package tml_tokenizers."""
SAME: Mapping[str, str] = {"moonshotai/Kimi-K2.5-Text-Only": "moonshotai/Kimi-K2.5"}
"""Models that have the tokenizer of another."""
PINNED: Mapping[str, str] = {
    "moonshotai/Kimi-K2-Thinking": "612681931a8c906ddb349f8ad0f582cb552189cd",
    "moonshotai/Kimi-K2.5": "4d01dfe0332d63057c186e0b262165819efb6611",
    "moonshotai/Kimi-K2.6": "b5aabbfb20227ed42becbf5541dbffd213942c58",
    "moonshotai/Kimi-K3": "f831ab66814297da540d832a5235f8e904f29d06",
}
"""Tokenizers that come with code of their own: the commit whose code is trusted."""


def tokenizer_id_of(model_name: str, tokenizer_id: str | None = None) -> str:
    """Return the id of a model's tokenizer: from the server, or derived from the name of the model.

    What follows a colon is part of neither.
    """
    name = (tokenizer_id or _usual(model_name.partition(":")[0])).partition(":")[0]
    return SAME.get(name, name)


def _usual(name: str) -> str:
    if name.startswith("meta-llama/Llama-3"):
        return UNGATED_LLAMA_3
    parts = name.split("/")
    # The third part of a name is a variant, which has the tokenizer of the model.
    return "/".join(parts[:2]) if len(parts) == 3 else name


@lru_cache(maxsize=32)
def load_tokenizer(tokenizer_id: str) -> Any:
    """Return the tokenizer with an id; load it once.

    Raises:
        ImportError: the package that loads it is not installed.
        OSError: of transformers, when the hub does not have it or cannot be reached.
    """
    if tokenizer_id.startswith(BYTES):
        return ByteTokenizer()
    if tokenizer_id.startswith(ELSEWHERE):
        try:
            from tml_tokenizers import tinker_tokenizers  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError(f"the tokenizer {tokenizer_id} requires the package tml_tokenizers; install it") from None
        tokenizer = tinker_tokenizers.get_tinker_tokenizer(tokenizer_id)
        if tokenizer is not None:
            return tokenizer
    try:
        from transformers import AutoTokenizer  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"the tokenizer {tokenizer_id} requires transformers; run pip install 'tinkerwire[tokenizers]'"
        ) from None
    revision = PINNED.get(tokenizer_id)
    trust = {} if revision is None else {"revision": revision, "trust_remote_code": True}
    return AutoTokenizer.from_pretrained(tokenizer_id, **trust)
