"""Logger of the client, whose handlers neither delay nor fail a result."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .background_thread import LOGGING
from .log_fields import current, log_fields

LOG_WAIT_S = 0.25
"""Time that an event loop waits for a log handler, to keep records in order; it does not wait for a stuck one."""

if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    _LoggerAdapter = logging.LoggerAdapter


class GuardedLogger(_LoggerAdapter):
    """Logger whose handlers can neither fail nor delay code on an event loop.

    Its records have the fields of :func:`log_fields`, by default of the operation that the caller belongs to.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message; see :meth:`logging.Logger.log`."""
        try:
            if not self.isEnabledFor(level):
                return
            record = self._record(level, msg, args, kwargs)
        except Exception:  # a filter or a record factory of the user's
            return
        if is_on_event_loop():
            LOGGING.call(partial(self.logger.handle, record), LOG_WAIT_S)
            return
        try:
            self.logger.handle(record)
        except Exception:
            return

    def _record(
        self, level: int, msg: object, args: tuple[object, ...], options: MutableMapping[str, Any]
    ) -> logging.LogRecord:
        # Here, as the exception, the place and the thread are those of the caller.
        exc_info = options.get("exc_info")
        if isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        elif exc_info and not isinstance(exc_info, tuple):
            exc_info = sys.exc_info()
        logger = self.logger
        path, line, function, stack = logger.findCaller(bool(options.get("stack_info")), 3)
        extra = {**log_fields(current.get()), **(options.get("extra") or {})}
        return logger.makeRecord(
            logger.name,
            level,
            path,
            line,
            msg,
            args,
            exc_info or None,
            function,
            extra,
            stack,
        )


def is_on_event_loop() -> bool:
    """Return whether the caller runs on the thread of an event loop, which must not be blocked."""
    return asyncio._get_running_loop() is not None


log = GuardedLogger("tinkerwire")
