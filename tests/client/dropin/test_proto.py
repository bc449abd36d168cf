"""Tests of ``tinker.proto``: protobuf messages and conversions, which third-party servers import."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import datum
from tinkerwire import types
from tinkerwire._server.http.protobuf import decode_request, encode_result
from tinkerwire.dropin.proto import request_conv, response_conv
from tinkerwire.dropin.proto import tinker_public_pb2 as pb
from tinkerwire_generated.protobuf import message_class


def test_messages_and_enums_have_the_official_names() -> None:
    """Messages are the classes that the client uses; enums have names, and their values are module attributes."""
    assert pb.SampleResponse is message_class("SampleResponse")
    assert pb.DType.Value("DTYPE_INT64") == pb.DTYPE_INT64
    assert pb.StopReason.Name(pb.STOP_REASON_LENGTH) == "STOP_REASON_LENGTH"
    assert pb.DESCRIPTOR.name == "tinker_public.proto"
    message = pb.SampleResponse(prompt_logprobs=b"abcd")
    assert pb.SampleResponse.FromString(message.SerializeToString()) == message == pickle.loads(pickle.dumps(message))


def test_request_is_converted_to_a_message() -> None:
    """The message decodes to the same request."""
    request = types.ForwardBackwardRequest(
        forward_backward_input=types.ForwardBackwardInput(
            data=[datum(3, 4)], loss_fn="cross_entropy", loss_fn_config={"a": 1.0, "b": "x"}
        ),
        model_id="m",
        seq_id=3,
    )
    message = request_conv.forward_backward_request_to_proto(request)
    assert isinstance(message, pb.ForwardBackwardRequest)
    assert (message.model_id, message.seq_id, message.loss_fn_config_v2["b"].text) == ("m", 3, "x")
    assert decode_request(message.SerializeToString()) == request


def test_results_are_converted_from_messages() -> None:
    """A function per result and one for any class convert; a class without a message raises an error that names it."""
    output = types.ForwardBackwardOutput(
        loss_fn_output_type="ArrayRecord",
        loss_fn_outputs=[{"logprobs": tw.TensorData(data=[1.0, 2.0], dtype="float32", shape=[2])}],
        metrics={"loss:sum": 2.0},
    )
    content = encode_result(output)
    assert response_conv.deserialize_forward_backward_output(content) == output
    assert response_conv.deserialize_proto_response(content, types.ForwardBackwardOutput) == output
    sample = pb.SampleResponse(
        sequences=[pb.SampledSequence(stop_reason=pb.STOP_REASON_STOP, tokens=np.array([5], np.int32).tobytes())]
    ).SerializeToString()
    assert response_conv.deserialize_sample_response(sample).sequences[0].tokens == [5]
    assert {types.SampleResponse, types.ForwardBackwardOutput} == response_conv.PROTO_SUPPORTED_TYPES
    with pytest.raises(ValueError, match=r"OptimStepResponse.*has no protobuf message; ForwardBackwardOutput, Sample"):
        response_conv.deserialize_proto_response(b"", types.OptimStepResponse)
    with pytest.raises(ValueError, match="cannot be parsed"):
        response_conv.deserialize_proto_response(b"\xff", types.SampleResponse)
