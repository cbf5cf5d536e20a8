"""One call of a capability, as the function that does the work sees it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from .errors import CallCancelled, CallFailure
from .media import (
    DEFAULT_MEDIA_URL,
    Media,
    guess_type,
    open_media,
    read_reference,
    remove_folder,
    write_local,
)

__all__ = ["Call", "CallCancelled", "CallFailure", "CallLog"]

logger = logging.getLogger("capstan")

_PAUSE_S = 0.25
"""Reports of progress that follow sooner are dropped, except that of 1."""
_MESSAGE = 200
_LOG_MESSAGE = 2_000
_TIME: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)
_DELTA = 1_250
"""Characters of a part of a text: all of them escaped, its line stays below the limit of 16 kB."""

Tell = Callable[[dict[str, Any]], bool]
"""Sends a line to the caller; false when the caller accepts none."""


class CallLog:
    """The log of the run; of the instance, if the caller accepts no lines."""

    def __init__(self, tell: Tell) -> None:
        """Log by `tell`."""
        self._tell = tell

    def debug(self, message: str) -> None:
        """Write a line of the level debug."""
        self._write("debug", message)

    def info(self, message: str) -> None:
        """Write a line of the level info."""
        self._write("info", message)

    def warn(self, message: str) -> None:
        """Write a line of the level warn."""
        self._write("warn", message)

    def error(self, message: str) -> None:
        """Write a line of the level error."""
        self._write("error", message)

    def _write(self, level: str, message: str) -> None:
        text = str(message)
        if not self._tell({"log": {"level": level, "message": text[:_LOG_MESSAGE]}}):
            logger.log(getattr(logging, level.upper().replace("WARN", "WARNING")), text)


class Call:
    """The second argument of a capability's function.

    `Call()` serves unit tests: it is never cancelled, and its log is that of the instance.
    """

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        *,
        media: Media | None = None,
        tell: Tell | None = None,
        state: Any = None,
    ) -> None:
        """Read the facts of a call from the headers of its request."""
        headers = headers or {}
        attempt = headers.get("x-attempt", "")
        self.idempotency_key: str | None = headers.get("idempotency-key")
        """The same in every attempt of one piece of work: use it to have an effect only once."""
        self.previous_fault = _read_fault(headers.get("x-previous-fault", ""))
        """Why the answer to this call was wrong before: `code`, `message`, `errors` if known."""
        self.attempt = int(attempt) if attempt.isdecimal() else 1
        """1 for the first attempt."""
        self.deadline = _read_time(headers.get("x-deadline", ""))
        """When the caller gives up."""
        self.callback_url: str | None = headers.get("x-callback-url")
        """The address for an answer that comes later; none if the caller needs it in place."""
        self.traceparent: str | None = headers.get("traceparent")
        """W3C trace context: forward it in requests to other services."""
        self.tracestate: str | None = headers.get("tracestate")
        """What tracing systems add to it: forward it too."""
        self.state = state
        """The result of `setup`."""
        self.cancelled = Event()
        """Set when the result is not needed any more. A thread cannot be stopped, so look at it."""
        self._media = media
        self._tell = tell or (lambda line: False)
        self.log = CallLog(self._tell)
        self._wants_delta = headers.get("x-stream") == "delta"
        self._told_at = float("-inf")
        self._folder: Path | None = None
        self._files = 0

    def check(self) -> None:
        """Raise CallCancelled if the call was cancelled. Use it between parts of long work."""
        if self.cancelled.is_set():
            raise CallCancelled("the call was cancelled")

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report progress from 0 to 1. Call it as often as you like: most reports are dropped."""
        now = time.monotonic()
        if now - self._told_at < _PAUSE_S and fraction < 1:
            return
        line: dict[str, Any] = {"progress": min(1.0, max(0.0, float(fraction)))}
        if message is not None:
            line["message"] = message[:_MESSAGE]
        if self._tell(line):
            self._told_at = now

    def delta(self, part: Any) -> None:
        """Pass on a part of the result to a caller that asked for a stream."""
        if not self._wants_delta:
            return
        whole = not isinstance(part, str)
        for piece in [part] if whole else _cut(part):
            self._tell({"delta": piece})

    def download(self, reference: str) -> Path:
        """Copy a file of the media store; the copy is deleted when the call ends.

        It raises MediaError if the file does not exist, and CallFailure 503 if the store is
        unavailable. In an async function, use ``await asyncio.to_thread(call.download, …)``.
        """
        _refuse_in_loop("download")
        self.check()
        path = read_reference(reference)
        to = self.temporary_path(path.file)
        self._store().fetch(path, to, self.cancelled)
        return to

    def upload(
        self, source: Path | str | bytes, reference: str, content_type: str | None = None
    ) -> None:
        """Store bytes, or the local file of a path. A file of that name is replaced as a whole.

        Without a content type, the ending of the reference decides. In an async function, use
        ``await asyncio.to_thread(call.upload, …)``.
        """
        _refuse_in_loop("upload")
        self.check()
        path = read_reference(reference)
        kind = content_type or guess_type(path.file)
        local = write_local(source, self.temporary_path(path.file))
        self._store().store(local, path, kind, self.cancelled)

    def temporary_path(self, name: str) -> Path:
        """Return a unique path for a new file; it is deleted when the call ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="capstan-call-"))
        self._files += 1
        return self._folder / f"{self._files}-{Path(name).name}"

    def close(self) -> None:
        """Delete the files of the call. The instance does so when the call ends."""
        if self._folder is not None:
            remove_folder(self._folder)

    def _store(self) -> Media:
        if self._media is None:
            url = os.environ.get("MEDIA_URL") or DEFAULT_MEDIA_URL
            self._media = open_media(url, os.environ.get("ROUTER_TOKEN"))
        return self._media


def _cut(text: str) -> list[str]:
    return [text[at : at + _DELTA] for at in range(0, len(text), _DELTA)]


def _refuse_in_loop(method: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"call.{method} would block the event loop: await asyncio.to_thread(call.{method}, …)"
    )


def _read_fault(text: str) -> dict[str, Any] | None:
    """Read the header `X-Previous-Fault`; None if it holds no fault."""
    try:
        fault = json.loads(text)
    except ValueError:
        return None
    has_facts = isinstance(fault, dict) and all(
        isinstance(fault.get(name), str) for name in ("code", "message")
    )
    return fault if has_facts else None


def _read_time(text: str) -> datetime | None:
    """RFC 3339, or milliseconds since 1970."""
    try:
        return _TIME.validate_strings(text)
    except ValidationError:
        return None
