"""Answers that come later: a call that is accepted with 202, and its result."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import httpx2 as httpx
from pydantic_core import to_jsonable_python

from .errors import AnswerLater, CallFailure

if TYPE_CHECKING:
    from .call import Call

SentResult = Literal["accepted", "late", "again", "unknown"]
"""late: the call no longer waits, and its cost is settled. again: it has received its answer."""

_RECEIPTS: dict[int, SentResult] = {204: "accepted", 404: "unknown", 409: "again", 410: "late"}
_PAUSES_S = (0.25, 1.0, 4.0, 15.0, 60.0)


def later(call: Call) -> NoReturn:
    """End the function with 202: the result is sent later to `call.callback_url`.

    Store the address before. The capability declares `answers_later`. Without an address, the
    caller needs its answer in place, and the call is refused with 422.
    """
    if call.callback_url is None:
        error = "this call needs its answer in place: it has no X-Callback-Url"
        raise CallFailure(422, error, code="callback_missing")
    raise AnswerLater("the answer comes later")


def send_result(callback_url: str, result: Any) -> SentResult:
    """Send the result of a call that was accepted: its output, or a `CallFailure`.

    It is sent again while Capstan does not answer, for a minute and a half. Then, or if Capstan
    refuses it, a RuntimeError is raised.
    """
    body = _body_of(result)
    for pause in (*_PAUSES_S, None):
        try:
            status = httpx.post(callback_url, json=body, timeout=60).status_code
        except httpx.TransportError as error:
            status, seen = None, str(error)
        else:
            seen = f"HTTP {status}"
            if status in _RECEIPTS:
                return _RECEIPTS[status]
        if pause is None or (status is not None and status < 500):
            break
        time.sleep(pause)
    raise RuntimeError(f"the result was not accepted: {seen}")


def _body_of(result: Any) -> dict[str, Any]:
    if not isinstance(result, CallFailure):
        return {"ok": True, "output": to_jsonable_python(result)}
    body: dict[str, Any] = {"ok": False, "error": str(result), "status": result.status}
    if result.retry_after is not None:
        body["retry_after_s"] = math.ceil(result.retry_after)
    if result.code is not None:
        body["error_code"] = result.code
    return body
