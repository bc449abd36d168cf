"""Attempts of a request that add events to the trace of their operation."""

from __future__ import annotations

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import TinkerError

from .._futures.operation_trace import OperationTrace, error_name
from .._transport.backpressure import Traffic
from .build_recorder import Exchange
from .send_options import SendOptions, T


def trace_attempts(
    trace: OperationTrace, options: SendOptions[T], exchange: Exchange
) -> tuple[SendOptions[T], Exchange]:
    """Return the options and the exchange of one request, which record its attempts and retries."""
    number = trace.start_send()
    trace.add("encoded", number)
    on_retry = options.on_retry

    async def traced_exchange(request: WireRequest, traffic: Traffic, timeout_s: float, max_s: float) -> WireResponse:
        trace.add("send", number, len(request.content or b""))
        response = await exchange(request, traffic, timeout_s, max_s)
        trace.add("response", number, response.status, len(response.content))
        return response

    def traced_retry(error: TinkerError, wait: float) -> None:
        trace.add_poll("retry", number, error_name(error), wait)
        if on_retry is not None:
            on_retry(error, wait)

    traced_options: SendOptions[T] = SendOptions(
        traffic=options.traffic,
        policy=options.policy,
        timeout_s=options.timeout_s,
        raise_immediately=options.raise_immediately,
        on_retry=traced_retry,
        replace=options.replace,
    )
    return traced_options, traced_exchange
