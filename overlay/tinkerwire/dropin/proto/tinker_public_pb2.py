"""The protobuf messages and enums of the wire, as the official ``tinker.proto.tinker_public_pb2`` names them.

The classes are made of the descriptors of this package, which lie in a pool of their own: the official module may be
imported in the same process. The client uses the same classes.
"""

from __future__ import annotations

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from tinkerwire_generated.protobuf import MESSAGE_VERSIONS, message_class

DESCRIPTOR = message_class("SampleResponse").DESCRIPTOR.file

globals().update({name: message_class(name) for name in MESSAGE_VERSIONS})
globals().update({enum.name: EnumTypeWrapper(enum) for enum in DESCRIPTOR.enum_types_by_name.values()})
globals().update({value.name: value.number for enum in DESCRIPTOR.enum_types_by_name.values() for value in enum.values})
