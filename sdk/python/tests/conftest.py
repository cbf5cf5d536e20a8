"""Instances and servers for tests, each in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from capstan import Capability
from capstan.lifecycle import Settings, run

DEADLINE_S = 60
"""Ends a test that hangs."""


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[Request], Reply]


def as_json(status: int, body: Any) -> Reply:
    return status, {"content-type": "application/json"}, json.dumps(body).encode()


class FakeServer:
    """A server that keeps its requests and answers by a function."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Answer = lambda request: as_json(200, {})
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): text for name, text in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                with outer._changed:
                    outer.requests.append(request)
                    outer._changed.notify_all()
                status, named, answer = outer.answer(request)
                self.send_response(status)
                for name, text in named.items():
                    self.send_header(name, text)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def wait_for(self, is_met: Callable[[list[Request]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: is_met(self.requests), DEADLINE_S), self.requests

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.close()


class Served:
    """An instance in a thread."""

    def __init__(
        self, capability: Capability[..., Any], settings: Settings, options: dict[str, Any]
    ) -> None:
        self.error: BaseException | None = None
        self.endpoint = ""
        self._ready = threading.Event()
        self._options = options
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(capability, settings)), daemon=True
        )
        self._thread.start()

    async def _run(self, capability: Capability[..., Any], settings: Settings) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await run(
                capability, settings, self._stopping, on_ready=self._set_ready, **self._options
            )
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()

    def _set_ready(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._ready.set()

    def wait_until_ready(self) -> Served:
        assert self._ready.wait(DEADLINE_S)
        return self

    def begin_stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stopping.set)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.begin_stop()
        self.join()

    def join(self) -> None:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start instances; they are stopped after the test."""
    started: list[Served] = []

    def start(
        capability: Capability[..., Any], environment: dict[str, str] | None = None, **options: Any
    ) -> Served:
        media = {"MEDIA_URL": f"file://{tmp_path}/media", "PORT": "0"}
        settings = Settings.read({**media, **(environment or {})})
        served = Served(capability, settings, options)
        started.append(served)
        return served

    yield start
    for served in started:
        if served._thread.is_alive():
            served.stop()
