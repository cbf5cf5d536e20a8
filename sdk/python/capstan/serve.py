"""The three routes of an instance: `POST /exec`, `GET /health`, `GET /spec`.

Only the router and programs of the network may ask, so what a browser sends is refused: a page that
somebody visits reaches the addresses of that person's machine.

A caller that accepts `application/x-ndjson` receives progress and log messages, one line each; the
last line is the ordinary answer. A call that reports nothing is answered as usual.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import ipaddress
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from .call import Call
from .capability import Capability
from .errors import AnswerLater, CallCancelled, CallFailure
from .media import Media

logger = logging.getLogger("capstan")

BODY_LIMIT = 16 * 1024 * 1024
_STARTED = time.monotonic()
_CLEAN_UP_S = 2.0


class Answer(NamedTuple):
    """The answer to one call."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}  # noqa: RUF012


def failure(status: int, error: str, headers: dict[str, str] | None = None) -> Answer:
    """The form of every error."""
    return Answer(status, {"ok": False, "error": error}, headers or {})


def in_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Run work in a thread of its own, which does not keep the process alive."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="capstan-call").start()
    return asyncio.wrap_future(future)


class Instance:
    """One running copy of a capability, without a socket and a registration.

    `app` is an ASGI app, which another app can mount.
    """

    def __init__(
        self,
        capability: Capability[..., Any],
        *,
        media: Media | None = None,
        state: Any = None,
        body_limit: int = BODY_LIMIT,
        hosts: Sequence[str] = (),
    ) -> None:
        """Serve the capability at `app`.

        `hosts` are the names by which callers know this machine, besides addresses and localhost.
        """
        self.capability = capability
        self.stopping = False
        self._media = media
        self._state = state
        self._body_limit = body_limit
        self._slots = asyncio.Semaphore(capability.max_concurrency)
        self._open: dict[asyncio.Task[Answer], Callable[[Answer], None]] = {}
        routes = [
            Route("/exec", _Endpoint(self._exec), methods=["POST"]),
            Route("/health", self._health),
            Route("/spec", self._spec),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[Middleware(_NoBrowser, hosts=hosts)],
            exception_handlers={HTTPException: _answer_refused},
        )
        self.app.router.redirect_slashes = False

    @property
    def queue_depth(self) -> int:
        """Calls that run or wait."""
        return len(self._open)

    async def drain(self, grace_s: float) -> None:
        """Refuse new calls, let open ones end, and cancel the rest after a grace period."""
        self.stopping = True
        if self._open:
            await asyncio.wait(self._open, timeout=grace_s)
        for end in list(self._open.values()):
            end(failure(503, "the instance is stopping"))
        if self._open:
            await asyncio.wait(self._open, timeout=_CLEAN_UP_S)

    async def _health(self, _: Request) -> JSONResponse:
        return JSONResponse(
            {
                "status": "ok",
                "name": self.capability.name,
                "version": self.capability.version,
                "uptime_ms": round((time.monotonic() - _STARTED) * 1000),
                "queue_depth": self.queue_depth,
                **self.capability.report(),
            }
        )

    async def _spec(self, _: Request) -> JSONResponse:
        return JSONResponse(self.capability.spec)

    async def _exec(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        reply = _Reply(send, "application/x-ndjson" in headers.get("accept", ""))
        if self.stopping:
            return await reply.end(failure(503, "the instance is stopping"), close=True)
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            error = "the body needs the header Content-Type: application/json"
            return await reply.end(failure(415, error), close=True)
        body = await _read_body(headers, receive, self._body_limit)
        if body is None:
            error = f"the body is larger than the allowed {self._body_limit} bytes"
            return await reply.end(failure(413, error), close=True)
        try:
            job = self.capability.read(body)
        except Exception as error:
            return await reply.end(_answer_error(error))
        call = Call(headers, media=self._media, tell=reply.tell, state=self._state)
        await reply.end(await self._run(call, job, receive), close=self.stopping)

    async def _run(self, call: Call, job: Any, receive: Receive) -> Answer:
        """Wait until the work has ended or the call is cancelled."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Answer] = loop.create_future()
        begun = asyncio.Event()
        work = asyncio.create_task(self._perform(call, job, begun))

        def end(answer: Answer) -> None:
            if ended.done():
                return
            ended.set_result(answer)
            call.cancelled.set()
            if self.capability.is_async or not begun.is_set():
                work.cancel()

        self._open[work] = end
        work.add_done_callback(self._open.pop)
        watch = asyncio.create_task(_watch(receive, end))
        timer = None
        if self.capability.timeout is not None:
            late = failure(504, f"the call took longer than {self.capability.timeout:g} s")
            timer = loop.call_later(self.capability.timeout, end, late)
        try:
            await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watch.cancel()
            if timer is not None:
                timer.cancel()
        return ended.result() if ended.done() else work.result()

    async def _perform(self, call: Call, job: Any, begun: asyncio.Event) -> Answer:
        """Do the work in a slot. A thread keeps its slot until it ends, also when cancelled."""
        try:
            async with self._slots:
                begun.set()
                if self.capability.is_async:
                    result = await self.capability.start(job, call)
                else:
                    result = await in_thread(lambda: self.capability.start(job, call))
            output = self.capability.write(result)
            return Answer(200, {"ok": True, "output": output, **self.capability.report()})
        except AnswerLater:
            return Answer(202, {"ok": True})
        except Exception as error:
            if not isinstance(error, (CallFailure, CallCancelled)):
                logger.exception("exec failed")
            return _answer_error(error)
        finally:
            call.close()


class _NoBrowser:
    """Refuses what only a browser sends.

    `Origin` and `Sec-Fetch-Site` are never sent by programs, and a foreign name in `Host` is one
    that a page has pointed at this machine.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._hosts = ("localhost", *(host.lower() for host in hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = self._find_fault(Headers(scope=scope)) if scope["type"] == "http" else None
        if error is None:
            return await self._app(scope, receive, send)
        body = {"ok": False, "error": error}
        await JSONResponse(body, 403, {"connection": "close"})(scope, receive, send)

    def _find_fault(self, headers: Headers) -> str | None:
        for name in ("origin", "sec-fetch-site"):
            if name in headers:
                return f"requests of browsers are refused; this one has the header {name}"
        host = headers.get("host")
        if host is None or self._is_own(host):  # HTTP/1.0 has none
            return None
        allowed = ", ".join(("an address", *self._hosts))
        more = "ADVERTISE_URL names another one"
        return f"the host {host} is not allowed; allowed are {allowed}. {more}"

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in self._hosts:
                return True
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class _Endpoint:
    """Starlette takes an object for an ASGI app of its own."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Any]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _Reply:
    """Answers one request: as one document, or in lines, from the first report on."""

    def __init__(self, send: Send, wants_lines: bool) -> None:
        self._send = send
        self._wants_lines = wants_lines
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._ended = False

    def tell(self, line: dict[str, Any]) -> bool:
        """Send a line, from any thread."""
        if not self._wants_lines or self._ended:
            return False
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._put, _dump(line) + b"\n")
        return True

    def _put(self, line: bytes) -> None:
        if self._ended:
            return
        self._lines.put_nowait(line)
        if self._pump is None:
            self._pump = asyncio.create_task(self._send_lines())

    async def _send_lines(self) -> None:
        await self._start(200, {"content-type": "application/x-ndjson"})
        while (line := await self._lines.get()) is not None:
            await self._send({"type": "http.response.body", "body": line, "more_body": True})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        pairs = [
            (name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def end(self, answer: Answer, *, close: bool = False) -> None:
        """Send the answer, as the last line if there are others."""
        if self._pump is not None and answer.status == 202:
            answer = failure(422, "a call that has reported lines is answered in place")
        try:
            body = _dump(answer.body)
        except ValueError as error:  # NaN and the infinities are no JSON
            answer = failure(422, f"the output is not JSON: {error}")
            body = _dump(answer.body)
        self._ended = True
        if self._pump is None:
            headers = {"content-type": "application/json", "content-length": str(len(body))}
            closing = {"connection": "close"} if close else {}
            await self._start(answer.status, {**headers, **answer.headers, **closing})
        else:
            self._lines.put_nowait(None)
            await self._pump
            body = _last_line(answer)
        await self._send({"type": "http.response.body", "body": body})


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="replace"
    )


def _last_line(answer: Answer) -> bytes:
    """The status 200 is sent already, so the line of a failure carries its own."""
    body = dict(answer.body)
    if answer.status != 200:
        body["status"] = answer.status
        if "retry-after" in answer.headers:
            body["retry_after_s"] = int(answer.headers["retry-after"])
        if "x-error-code" in answer.headers:
            body["error_code"] = answer.headers["x-error-code"]
    return _dump(body) + b"\n"


def _answer_error(error: Exception) -> Answer:
    message = str(error) or type(error).__name__
    if not isinstance(error, CallFailure):
        return failure(422, message)
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if error.code is not None:
        headers["x-error-code"] = error.code
    return failure(error.status, message, headers)


async def _answer_refused(_: Request, error: Exception) -> JSONResponse:
    """Another path or method: the form of the contract."""
    assert isinstance(error, HTTPException)
    body = {"ok": False, "error": "there are POST /exec, GET /health and GET /spec"}
    return JSONResponse(body, error.status_code, error.headers)


async def _read_body(headers: Headers, receive: Receive, limit: int) -> bytes | None:
    """Read the body; none if it is too large."""
    if int(headers.get("content-length", 0)) > limit:
        return None
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _watch(receive: Receive, end: Callable[[Answer], None]) -> None:
    """End a call whose caller has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    end(failure(503, "the caller closed the connection"))
