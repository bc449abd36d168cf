"""The check that a sample fits into the context of its model, before it is sent."""

from __future__ import annotations

from tinkerwire_base.errors import ContextLengthError, ResponseInfo
from tinkerwire_generated.models import EncodedTextChunk, ModelInput

BAD_REQUEST = 400


def check_context_length(prompt: ModelInput, max_tokens: int | None, context_length: int) -> None:
    """Refuse a prompt that does not fit into the context together with ``max_tokens`` more tokens.

    A prompt with an image or another chunk that is not text is not checked: only the server knows its length.

    Raises:
        ContextLengthError: the two exceed the context.
    """
    if not all(isinstance(chunk, EncodedTextChunk) for chunk in prompt.chunks):
        return
    prompt_tokens, requested_tokens = prompt.length, max(max_tokens or 0, 0)
    if prompt_tokens + requested_tokens <= context_length:
        return
    room = context_length - prompt_tokens
    way_out = f"set max_tokens to at most {room}, or shorten the prompt" if room > 0 else "shorten the prompt"
    message = (
        f"prompt and max_tokens must fit into the model's context of {context_length} tokens, got a prompt of "
        f"{prompt_tokens} tokens and max_tokens={max_tokens}; {way_out}"
    )
    # The response of a server that checks for itself; none was asked.
    response = ResponseInfo(status_code=BAD_REQUEST, text=message)
    raise ContextLengthError(
        message, response, prompt_tokens=prompt_tokens, max_tokens=max_tokens, context_length=context_length
    )
