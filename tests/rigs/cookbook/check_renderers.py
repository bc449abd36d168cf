"""A program on the cookbook: its renderers work with the byte tokenizer, up to samples of the embedded server.

It runs in the environment of the cookbook, with tinkerwire in place of the official SDK; see run.py.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any

import tinker
from tinker_cookbook.renderers import get_renderer

from tinkerwire._server.images import ImageError, count_squares
from tinkerwire.local import ByteTokenizer

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Whát is 1+1?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "Sure?"},
]
NAMES = ("role_colon", "llama3", "qwen3", "qwen3_disable_thinking", "qwen3_instruct", "qwen3_5", "kimi_k2")


def get_expected(name: str, tokenizer: ByteTokenizer) -> str | None:
    """Return the text of the prompt, where the format is simple enough to write it down."""
    if name == "role_colon":
        return "System: Be brief.\n\nUser: Whát is 1+1?\n\nAssistant: 2\n\nUser: Sure?\n\nAssistant:"
    if name == "llama3":
        turns = "".join(
            f"<|start_header_id|>{message['role']}<|end_header_id|>\n\n{message['content']}<|eot_id|>"
            for message in MESSAGES
        )
        return f"<|begin_of_text|>{turns}<|start_header_id|>assistant<|end_header_id|>\n\n"
    if name == "qwen3_instruct":
        text: str = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
        return text
    return None


def check(name: str, tokenizer: Any, sampling: tinker.SamplingClient) -> None:
    """Check a renderer: prompt, stop, parsed response, supervised example, and a sample."""
    renderer = get_renderer(name, tokenizer)
    prompt = renderer.build_generation_prompt(MESSAGES)
    text = tokenizer.decode(prompt.to_ints())
    expected = get_expected(name, tokenizer)
    assert expected is None or text == expected, (text, expected)
    assert "Whát is 1+1?" in text
    stop = renderer.get_stop_sequences()
    end = stop[0] if isinstance(stop[0], str) else tokenizer.decode([stop[0]])
    message, termination = renderer.parse_response(tokenizer.encode(f"yes{end}"))
    assert message["content"] == "yes" and termination.name == "STOP_SEQUENCE", (message, termination)
    example, weights = renderer.build_supervised_example([*MESSAGES, {"role": "assistant", "content": "yes"}])
    trained = [token for token, weight in zip(example.to_ints(), weights.tolist(), strict=True) if weight]
    assert "yes" in tokenizer.decode(trained) and "1+1" not in tokenizer.decode(trained)
    params = tinker.SamplingParams(max_tokens=8, stop=stop, seed=1)
    tokens = sampling.sample(prompt, num_samples=1, sampling_params=params).result().sequences[0].tokens
    assert 1 <= len(tokens) <= 8
    renderer.parse_response(list(tokens))


def check_saved_tokenizer(tokenizer: ByteTokenizer) -> None:
    """Check that transformers loads the same tokenizer, with the same chat template, from its files."""
    import tempfile  # noqa: PLC0415

    from transformers import AutoTokenizer  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        loaded = AutoTokenizer.from_pretrained(folder)
    for text in (
        "né",
        "a<|im_end|>b<|endoftext|>",
        "<think>a</think>",
        "<|start_header_id|>",
        "\x00\x7f\xa0 \U0001f600",
    ):
        assert loaded.encode(text, add_special_tokens=False) == tokenizer.encode(text), text
    tokens = tokenizer.encode("<think>né</think><|im_end|>\n")
    assert loaded.decode(tokens) == tokenizer.decode(tokens)
    assert loaded.decode(tokens, skip_special_tokens=True) == tokenizer.decode(tokens, skip_special_tokens=True)
    for options in ({}, {"add_generation_prompt": True}):
        expected = loaded.apply_chat_template(MESSAGES, tokenize=False, **options)
        assert tokenizer.apply_chat_template(MESSAGES, tokenize=False, **options) == expected


def create_image_processor() -> Any:
    """Create the image processor with the settings of Qwen3-VL, which its hub would give."""
    from transformers import Qwen2VLImageProcessor  # noqa: PLC0415

    return Qwen2VLImageProcessor(
        patch_size=16, merge_size=2, size={"shortest_edge": 256 * 256, "longest_edge": 4096 * 4096}
    )


def check_image_tokens(processor: Any) -> None:
    """Check that the server counts tokens as the image processor does, for sizes of all magnitudes."""
    rng = random.Random(0)
    for _ in range(5000):
        width, height = (int(2 ** rng.uniform(0, 13)) for _ in range(2))
        try:
            expected = processor.get_number_of_image_patches(height, width, {}) // processor.merge_size**2
        except ValueError:
            expected = None
        try:
            count = math.prod(count_squares(width, height))
        except ImageError:
            count = None
        assert count == expected, (width, height, count, expected)


def check_image_renderer(tokenizer: Any, processor: Any, sampling: tinker.SamplingClient) -> None:
    """Check that a prompt with an image is sampled, with the tokens that the renderer expects of the image."""
    from PIL import Image  # noqa: PLC0415

    renderer = get_renderer("qwen3_vl_instruct", tokenizer, image_processor=processor)
    content = [
        {"type": "image", "image": Image.new("RGB", (300, 200), "red")},
        {"type": "text", "text": "What colour?"},
    ]
    prompt = renderer.build_generation_prompt([{"role": "user", "content": content}])
    params = tinker.SamplingParams(max_tokens=4, stop=renderer.get_stop_sequences(), seed=1)
    logprobs = sampling.compute_logprobs(prompt).result()
    assert len(logprobs) == prompt.length
    assert logprobs.count(None) == 1 + 70
    assert sampling.sample(prompt, num_samples=1, sampling_params=params).result().sequences


def main() -> int:
    """Check all renderers, and print a line for each."""
    failed = 0

    def report(name: str, work: Callable[[], None]) -> None:
        nonlocal failed
        try:
            work()
            sys.stdout.write(f"{name}: works\n")
        except Exception as error:
            failed += 1
            sys.stdout.write(f"{name}: {type(error).__name__}: {error}\n")

    with tinker.ServiceClient(base_url="local") as service:
        sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
        tokenizer = sampling.get_tokenizer()
        for name in NAMES:
            report(name, lambda name=name: check(name, tokenizer, sampling))
        report("saved tokenizer", lambda: check_saved_tokenizer(tokenizer))
        processor = create_image_processor()
        report("image tokens", lambda: check_image_tokens(processor))
        report("qwen3_vl_instruct", lambda: check_image_renderer(tokenizer, processor, sampling))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
