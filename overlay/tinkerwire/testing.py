"""A server of the Tinker API for the tests of a program: embedded, seeded, and reachable over HTTP.

    from tinkerwire.testing import LocalServer

The fixtures of the pytest plugin return these objects; docs/testing.md describes them. Other test runners use
``with LocalServer() as server:``.
"""

from ._server.emulation.fault_injection import FaultInjection as FaultInjection
from ._testing.local_server import LocalServer as LocalServer
