"""Failed training steps with unretrieved errors: logged at once, and named when weights are saved."""

from __future__ import annotations

from collections import OrderedDict

from tinkerwire_base.errors import CancelledSubmissionError, ClientClosedError

from .._futures.logger import log
from .._futures.operation_record import OperationRecord

MAX_REMEMBERED = 100
MAX_LISTED_FAILURES = 5


class UnretrievedFailures:
    """The failed training steps of one model since its weights were last saved. Used on the loop thread."""

    def __init__(self) -> None:
        self._failed: OrderedDict[OperationRecord, str] = OrderedDict()

    def add(self, record: OperationRecord, error: Exception) -> None:
        """Record a failed step, and log its error if no caller waits for the result.

        A caller may keep the future and never read it; nothing else would report the missing step then.
        """
        if isinstance(error, ClientClosedError | CancelledSubmissionError):
            return
        name = " ".join((record.kind, *record.request_ids[-1:]))
        self._failed[record] = f"{name}: {error!s:.300}"
        if len(self._failed) > MAX_REMEMBERED:
            self._failed.popitem(last=False)
        if not record.waiters and not record.is_error_retrieved:
            record.is_error_logged = True
            log.error("%s failed, and no caller waits for its result: %s", name, error, exc_info=error)

    def warn_of_save(self, name: str) -> None:
        """Log the failed steps with unretrieved errors that the saved weights lack."""
        lacking = [text for record, text in self._failed.items() if not record.is_error_retrieved]
        self._failed.clear()
        if not lacking:
            return
        shown = "; ".join(lacking[:MAX_LISTED_FAILURES])
        more = f"; and {len(lacking) - MAX_LISTED_FAILURES} more" if len(lacking) > MAX_LISTED_FAILURES else ""
        log.warning("the weights saved as %s lack %d training steps that failed: %s%s", name, len(lacking), shown, more)

    def clear(self) -> None:
        """Drop the failed steps, because other weights were loaded."""
        self._failed.clear()
