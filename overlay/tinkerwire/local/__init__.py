"""An embedded server of the Tinker API: trains and samples small models offline, in process or over HTTP.

    from tinkerwire.local import EmbeddedServer, embedded_transport

``ServiceClient(base_url="local")`` is one server that the whole process shares, with a temporary folder;
``base_url="local:FOLDER"`` keeps the checkpoints in a folder.
"""

from tinkerwire.local.keeping import Keeping as Keeping
from tinkerwire.local.misbehaviour import ConnectionDropped as ConnectionDropped
from tinkerwire.local.misbehaviour import Misbehaviour as Misbehaviour
from tinkerwire.local.peculiarities import Peculiarities as Peculiarities
from tinkerwire.local.server import EmbeddedServer as EmbeddedServer
from tinkerwire.local.transport import EmbeddedTransport as EmbeddedTransport
from tinkerwire.local.transport import embedded_transport as embedded_transport
from tinkerwire.local.transport import shared_server as shared_server
from tinkerwire.local.transport import shared_transport as shared_transport
