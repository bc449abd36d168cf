"""The tokenizer of the embedded server's models: one token a byte of UTF-8, and one for the end."""

from __future__ import annotations

from collections.abc import Sequence


class ByteTokenizer:
    """Text to tokens and back; of the methods of a Hugging Face tokenizer it has those two."""

    name_or_path = "tinkerwire/bytes"
    eos_token_id = 256
    vocab_size = 257

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The tokens of a text; no special ones, whatever is said."""
        return list(text.encode())

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """The text of tokens: without the end, and with U+FFFD for bytes that are no UTF-8.

        Raises:
            ValueError: a token that is none.
        """
        for position, token in enumerate(token_ids):
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"token_ids[{position}]: {token} is not one of the {self.vocab_size} tokens")
        return bytes(token for token in token_ids if token != self.eos_token_id).decode(errors="replace")
