# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Endpoints of the wire by name."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire_base.call import Operation

from .api.admin.get_audit_log import OPERATION as get_audit_log
from .api.admin.get_billing_usage import OPERATION as get_billing_usage
from .api.admin.get_checkpoint_storage_usage import OPERATION as get_checkpoint_storage_usage
from .api.auth.auth_config import OPERATION as auth_config
from .api.auth.auth_token import OPERATION as auth_token
from .api.auth.client_config import OPERATION as client_config
from .api.auth.client_dynamic_config import OPERATION as client_dynamic_config
from .api.auth.create_api_key import OPERATION as create_api_key
from .api.auth.delete_own_api_key import OPERATION as delete_own_api_key
from .api.auth.get_own_api_key import OPERATION as get_own_api_key
from .api.futures.cancel_future import OPERATION as cancel_future
from .api.futures.retrieve_future import OPERATION as retrieve_future
from .api.futures.retrieve_futures import OPERATION as retrieve_futures
from .api.runs.delete_checkpoint import OPERATION as delete_checkpoint
from .api.runs.get_checkpoint_archive_url import OPERATION as get_checkpoint_archive_url
from .api.runs.get_external_weights_urls import OPERATION as get_external_weights_urls
from .api.runs.get_training_run import OPERATION as get_training_run
from .api.runs.list_checkpoints import OPERATION as list_checkpoints
from .api.runs.list_model_checkpoints import OPERATION as list_model_checkpoints
from .api.runs.list_training_runs import OPERATION as list_training_runs
from .api.runs.list_user_checkpoints import OPERATION as list_user_checkpoints
from .api.runs.publish_checkpoint import OPERATION as publish_checkpoint
from .api.runs.set_checkpoint_ttl import OPERATION as set_checkpoint_ttl
from .api.runs.unpublish_checkpoint import OPERATION as unpublish_checkpoint
from .api.sampling.asample import OPERATION as asample
from .api.sampling.create_sampling_session import OPERATION as create_sampling_session
from .api.sampling.get_sampler import OPERATION as get_sampler
from .api.sampling.join_sampling_session import OPERATION as join_sampling_session
from .api.sampling.sample import OPERATION as sample
from .api.service.get_server_capabilities import OPERATION as get_server_capabilities
from .api.service.healthz import OPERATION as healthz
from .api.session.assign_session_project import OPERATION as assign_session_project
from .api.session.create_session import OPERATION as create_session
from .api.session.export_session_trace import OPERATION as export_session_trace
from .api.session.finish_session import OPERATION as finish_session
from .api.session.get_session import OPERATION as get_session
from .api.session.list_sessions import OPERATION as list_sessions
from .api.session.search_sessions import OPERATION as search_sessions
from .api.session.session_heartbeat import OPERATION as session_heartbeat
from .api.telemetry.telemetry import OPERATION as telemetry
from .api.training.create_custom_loss import OPERATION as create_custom_loss
from .api.training.create_model import OPERATION as create_model
from .api.training.forward import OPERATION as forward
from .api.training.forward_backward import OPERATION as forward_backward
from .api.training.get_info import OPERATION as get_info
from .api.training.optim_step import OPERATION as optim_step
from .api.training.unload_model import OPERATION as unload_model
from .api.weights.copy_weights import OPERATION as copy_weights
from .api.weights.load_weights import OPERATION as load_weights
from .api.weights.save_weights import OPERATION as save_weights
from .api.weights.save_weights_external import OPERATION as save_weights_external
from .api.weights.save_weights_for_sampler import OPERATION as save_weights_for_sampler
from .api.weights.weights_info import OPERATION as weights_info

OPERATIONS: Mapping[str, Operation] = {
    "asample": asample,
    "assign_session_project": assign_session_project,
    "auth_config": auth_config,
    "auth_token": auth_token,
    "cancel_future": cancel_future,
    "client_config": client_config,
    "client_dynamic_config": client_dynamic_config,
    "copy_weights": copy_weights,
    "create_api_key": create_api_key,
    "create_custom_loss": create_custom_loss,
    "create_model": create_model,
    "create_sampling_session": create_sampling_session,
    "create_session": create_session,
    "delete_checkpoint": delete_checkpoint,
    "delete_own_api_key": delete_own_api_key,
    "export_session_trace": export_session_trace,
    "finish_session": finish_session,
    "forward": forward,
    "forward_backward": forward_backward,
    "get_audit_log": get_audit_log,
    "get_billing_usage": get_billing_usage,
    "get_checkpoint_archive_url": get_checkpoint_archive_url,
    "get_checkpoint_storage_usage": get_checkpoint_storage_usage,
    "get_external_weights_urls": get_external_weights_urls,
    "get_info": get_info,
    "get_own_api_key": get_own_api_key,
    "get_sampler": get_sampler,
    "get_server_capabilities": get_server_capabilities,
    "get_session": get_session,
    "get_training_run": get_training_run,
    "healthz": healthz,
    "join_sampling_session": join_sampling_session,
    "list_checkpoints": list_checkpoints,
    "list_model_checkpoints": list_model_checkpoints,
    "list_sessions": list_sessions,
    "list_training_runs": list_training_runs,
    "list_user_checkpoints": list_user_checkpoints,
    "load_weights": load_weights,
    "optim_step": optim_step,
    "publish_checkpoint": publish_checkpoint,
    "retrieve_future": retrieve_future,
    "retrieve_futures": retrieve_futures,
    "sample": sample,
    "save_weights": save_weights,
    "save_weights_external": save_weights_external,
    "save_weights_for_sampler": save_weights_for_sampler,
    "search_sessions": search_sessions,
    "session_heartbeat": session_heartbeat,
    "set_checkpoint_ttl": set_checkpoint_ttl,
    "telemetry": telemetry,
    "unload_model": unload_model,
    "unpublish_checkpoint": unpublish_checkpoint,
    "weights_info": weights_info,
}
