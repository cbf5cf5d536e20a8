"""Errors that a call of a capability raises."""

from __future__ import annotations

from typing import Literal

CallStatus = Literal[422, 429, 502, 503, 504]


class CallFailure(Exception):
    """Raise it to choose the status of the answer; any other error is answered 422.

    - 422: the input is at fault; the router does not retry.
    - 429, 503: busy; the router retries elsewhere or later, and does not count it.
    - 502, 504: the instance failed; the router retries on another one.

    :param retry_after: for 429 and 503, seconds until the caller should retry
    :param code: an error code for callers that know the capability, such as ``disk_full``
    """

    def __init__(
        self,
        status: CallStatus,
        message: str,
        *,
        retry_after: float | None = None,
        code: str | None = None,
    ) -> None:
        """Keep the parts of the answer."""
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.code = code


class AnswerLater(Exception):
    """Raised by `later`: the call is accepted, and its answer comes later."""


class CallCancelled(Exception):
    """The call was cancelled: its caller left, it timed out, or the instance stops."""
