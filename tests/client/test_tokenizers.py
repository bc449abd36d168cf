"""Tests of tokenizers: which one belongs to a model, and how it is loaded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from support.scripted import ScriptedResponse, ScriptedServer
from tinkerwire._tokenizers import lookup
from tinkerwire._tokenizers.byte_tokenizer import ADDED_TOKENS, CHAT_TEMPLATE, SPECIAL_TOKENS, ByteTokenizer

pytestmark = pytest.mark.timeout(60)
KIMI = "moonshotai/Kimi-K2.5"


@pytest.fixture(autouse=True)
def clear_tokenizer_cache() -> Iterator[None]:
    lookup.load_tokenizer.cache_clear()
    yield
    lookup.load_tokenizer.cache_clear()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Record what transformers is called with; each call returns a new object."""
    request: list[tuple[str, dict[str, Any]]] = []

    class AutoTokenizer:
        @staticmethod
        def from_pretrained(name: str, **options: Any) -> object:
            request.append((name, options))
            return object()

    module = ModuleType("transformers")
    module.AutoTokenizer = AutoTokenizer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", module)
    return request


@pytest.mark.parametrize(
    ("model", "tokenizer_id", "expected"),
    [
        ("Qwen/Qwen3-8B", None, "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B:peft:1", None, "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B/long", None, "Qwen/Qwen3-8B"),
        ("a/b/c/d", None, "a/b/c/d"),
        ("Qwen/Qwen3-8B", "some/tokenizer:v2", "some/tokenizer"),
        ("meta-llama/Llama-3.1-8B", None, "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer"),
        ("meta-llama/Llama-3.1-8B", "own/tokenizer", "own/tokenizer"),
        ("moonshotai/Kimi-K2.5-Text-Only", None, KIMI),
    ],
)
def test_tokenizer_id_of_the_server_overrides_the_model_name(
    model: str, tokenizer_id: str | None, expected: str
) -> None:
    """The server's tokenizer id has precedence over the model's name without variant; some models use another's."""
    assert lookup.tokenizer_id_of(model, tokenizer_id) == expected


def test_tokenizers_are_loaded_once(loads: list[Any]) -> None:
    """The same tokenizer is the same object; remote code is trusted at one commit only."""
    assert lookup.load_tokenizer("a/b") is lookup.load_tokenizer("a/b")
    lookup.load_tokenizer(KIMI)
    assert loads == [("a/b", {}), (KIMI, {"revision": lookup.PINNED[KIMI], "trust_remote_code": True})]


def test_clients_load_the_tokenizer_of_their_model(
    server: ScriptedServer, client: tw.ServiceClient, loads: list[Any]
) -> None:
    """A training client uses the server's tokenizer id, a sampling client its base model."""
    model_data = {"model_name": "a/b", "tokenizer_id": "c/d:1"}
    server.rules["get_info"] = lambda _: ScriptedResponse({"model_id": "m1", "model_data": model_data})
    server.rules["samplers/sampler1"] = lambda _: ScriptedResponse({"sampler_id": "sampler1", "base_model": "a/b"})
    client.create_lora_training_client("a/b").get_tokenizer()
    client.create_sampling_client(base_model="a/b").get_tokenizer()
    assert [name for name, _ in loads] == ["c/d", "a/b"]


def test_unnamed_model_has_no_tokenizer(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Without a name the client raises an error instead of guessing."""
    server.rules["get_info"] = lambda _: ScriptedResponse({"model_id": "m1", "model_data": {}})
    with pytest.raises(tw.TinkerError, match="names neither its tokenizer nor its base model"):
        client.create_lora_training_client("a/b").get_tokenizer()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package to install."""
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "tml_tokenizers", None)
    with pytest.raises(ImportError, match=r"a/b requires transformers; run pip install 'tinkerwire\[tokenizers\]'"):
        lookup.load_tokenizer("a/b")
    with pytest.raises(ImportError, match="thinkingmachines/x requires the package tml_tokenizers"):
        lookup.load_tokenizer("thinkingmachines/x")


def test_embedded_server_has_a_byte_tokenizer() -> None:
    """Its clients have a tokenizer without any package; text survives encoding and decoding."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
        tokenizer = training.get_tokenizer()
        assert isinstance(tokenizer, ByteTokenizer) and isinstance(sampling.get_tokenizer(), ByteTokenizer)
    assert tokenizer.encode("né") == [110, 195, 169]
    assert tokenizer.decode([110, 195, 169, tokenizer.eos_token_id]) == "né"
    assert tokenizer.decode([195]) == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(ValueError, match=r"token_ids\[1\]: 257"):
        tokenizer.decode([1, 257])


def test_byte_tokenizer_writes_files_for_transformers(tmp_path: Path) -> None:
    """The files hold a byte-level BPE without merges whose tokens are the bytes."""
    ByteTokenizer().save_pretrained(tmp_path / "org" / "model")
    content = json.loads((tmp_path / "org/model/tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(256)) and content["model"]["merges"] == []
    expected = {"a": 97, "~": 126, "é": 0xE9, "Ġ": 32, "Ċ": 10, "Ā": 0, "ġ": 127, "ł": 160, "Ń": 173}
    assert {letter: vocabulary[letter] for letter in expected} == expected
    added_tokens = {row["content"]: row["id"] for row in content["added_tokens"]}
    assert added_tokens == dict(ADDED_TOKENS)
    # The package tokenizers numbers added tokens that the vocabulary lacks from 256 on, in their order.
    assert {text for text, token in added_tokens.items() if vocabulary.get(text) != token} == {"<|endoftext|>"}
    assert not content["pre_tokenizer"]["add_prefix_space"] and not content["pre_tokenizer"]["use_regex"]
    settings = json.loads((tmp_path / "org/model/tokenizer_config.json").read_text())
    assert settings == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|endoftext|>",
        "chat_template": CHAT_TEMPLATE,
    }


def test_special_tokens_are_bytes_that_no_text_has() -> None:
    """Every character has the tokens of its UTF-8 bytes, none of which is special."""
    tokenizer = ByteTokenizer()
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    used = set("".join(characters).encode())
    assert not used & {*ADDED_TOKENS.values()}
    assert set(tokenizer.all_special_ids) < {*ADDED_TOKENS.values()}
    text = "".join(characters[::97])
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.lists(st.sampled_from([*ADDED_TOKENS, "é", "<|im", "_end|>", "x"])))
def test_special_tokens_survive_encoding_and_decoding(parts: list[str]) -> None:
    """A special text is one token; skip_special_tokens and the end token leave the text around it."""
    tokenizer, text = ByteTokenizer(), "".join(parts)
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text.replace("<|endoftext|>", "")
    for content, token in ADDED_TOKENS.items():
        assert tokens.count(token) == "".join(parts).count(content)
        assert tokenizer.convert_tokens_to_ids(content) == token
        text = text.replace(content, "") if content in SPECIAL_TOKENS else text
    assert tokenizer.decode(tokens, skip_special_tokens=True) == text


def test_single_tokens_are_converted() -> None:
    """One token decodes without a list; a text of several tokens has no id."""
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(104) == "h"
    assert tokenizer.convert_tokens_to_ids(["<|im_end|>", "a", "<tool>"]) == [0xC1, 97, None]
    assert tokenizer.encode("<|im_end|>", split_special_tokens=True) == list(b"<|im_end|>")
    assert len(tokenizer) == tokenizer.vocab_size == 257


MESSAGES = [{"role": "user", "content": "Hé"}, {"role": "assistant", "content": ""}]


@pytest.mark.parametrize("options", [{}, {"add_generation_prompt": True}])
def test_chat_template_is_that_of_its_jinja_text(options: dict[str, bool]) -> None:
    """The text of ``chat_template``, which transformers renders, gives the same conversation."""
    tokenizer = ByteTokenizer()
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(tokenizer.chat_template)
    rendered = template.render(messages=MESSAGES, **options)
    assert tokenizer.apply_chat_template(MESSAGES, tokenize=False, **options) == rendered
    assert tokenizer.decode(tokenizer.apply_chat_template(MESSAGES, **options)) == rendered


def test_chat_template_has_the_forms_of_hugging_face() -> None:
    """Parts of text are joined, the last message may be continued, and a dict has a mask."""
    tokenizer = ByteTokenizer()
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert tokenizer.apply_chat_template(parts, tokenize=False) == "<|im_start|>user\nab<|im_end|>\n"
    continued = tokenizer.apply_chat_template(parts, tokenize=False, continue_final_message=True)
    assert continued == "<|im_start|>user\nab"
    encoded = tokenizer.apply_chat_template(parts, return_dict=True)
    assert encoded["input_ids"] == tokenizer.encode("<|im_start|>user\nab<|im_end|>\n")
    assert encoded["attention_mask"] == [1] * len(encoded["input_ids"])


@pytest.mark.parametrize(
    ("conversation", "options", "reason"),
    [
        ([{"role": "user"}], {}, r"conversation\[0\]: expected a dict with role and content"),
        (["Hi"], {}, r"conversation\[0\]: expected a dict with role and content, got str"),
        ([{"role": "user", "content": 3}], {}, "content: expected a text or a list of parts, got int"),
        ([{"role": "user", "content": [{"type": "image"}]}], {}, "only has parts of type text, got 'image'"),
        ([{"role": 1, "content": "x"}], {}, "role: expected a text such as 'user', got 1"),
        ([], {"add_generation_prompt": True, "continue_final_message": True}, "not both"),
    ],
)
def test_invalid_conversation_is_rejected(conversation: Any, options: dict[str, bool], reason: str) -> None:
    """The error names the message and the part."""
    with pytest.raises(ValueError, match=reason):
        ByteTokenizer().apply_chat_template(conversation, **options)
