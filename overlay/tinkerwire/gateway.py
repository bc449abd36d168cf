"""A gateway between clients and servers of different wire versions, for tests and programs.

    from tinkerwire.gateway import Gateway

    with Gateway(to="http://127.0.0.1:8080") as gateway:
        ...

``tinkerwire gateway --to URL`` runs one as a process; docs/gateway.md describes both.
"""

from ._gateway.server import Gateway as Gateway
