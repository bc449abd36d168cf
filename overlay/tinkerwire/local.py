"""The embedded server: trains and samples small models offline, in process or over HTTP.

    from tinkerwire.local import EmbeddedServer, embedded_transport

``ServiceClient(base_url="local")`` uses one server for the whole process, with a temporary folder. With
``base_url="local:FOLDER"``, checkpoints and state are kept in a folder.
This module is for programs and tests that configure a server themselves.
"""

from ._server.app import EmbeddedServer as EmbeddedServer
from ._server.emulation.fault_injection import ConnectionDropped as ConnectionDropped
from ._server.emulation.fault_injection import FaultInjection as FaultInjection
from ._server.emulation.quirks import Quirks as Quirks
from ._server.futures.retention_policy import RetentionPolicy as RetentionPolicy
from ._tokenizers.byte_tokenizer import ByteTokenizer as ByteTokenizer
from ._transport.embedded import EmbeddedTransport as EmbeddedTransport
from ._transport.embedded import embedded_transport as embedded_transport
from ._transport.embedded import shared_server as shared_server
