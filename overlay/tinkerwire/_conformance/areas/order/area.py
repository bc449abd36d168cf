"""The area of order."""

from ...requirement import Area

AREA = Area("ORD", "order", "Order: seq_ids, and repeated operations")
