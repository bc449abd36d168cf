"""The area of the protocol."""

from ...requirement import Area

AREA = Area("PRO", "protocol", "The protocol: HTTP, media types, bodies, errors and idempotency keys")
