# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family admin."""

from .get_audit_log import get_audit_log as get_audit_log
from .get_billing_usage import get_billing_usage as get_billing_usage
from .get_checkpoint_storage_usage import get_checkpoint_storage_usage as get_checkpoint_storage_usage
