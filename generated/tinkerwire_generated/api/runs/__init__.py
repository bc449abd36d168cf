# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the family runs."""

from .delete_checkpoint import delete_checkpoint as delete_checkpoint
from .get_checkpoint_archive_url import get_checkpoint_archive_url as get_checkpoint_archive_url
from .get_external_weights_urls import get_external_weights_urls as get_external_weights_urls
from .get_training_run import get_training_run as get_training_run
from .list_checkpoints import list_checkpoints as list_checkpoints
from .list_model_checkpoints import list_model_checkpoints as list_model_checkpoints
from .list_training_runs import list_training_runs as list_training_runs
from .list_user_checkpoints import list_user_checkpoints as list_user_checkpoints
from .publish_checkpoint import publish_checkpoint as publish_checkpoint
from .set_checkpoint_ttl import set_checkpoint_ttl as set_checkpoint_ttl
from .unpublish_checkpoint import unpublish_checkpoint as unpublish_checkpoint
