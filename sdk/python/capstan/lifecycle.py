"""The life of an instance: set up, listen, register, send heartbeats, deregister, end.

A registration is repeated until the router answers; one that it refuses ends the process. Failed
heartbeats and a failed deregistration are ignored. An instance that stops first deregisters, then
lets its calls end within a grace period.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

import httpx2 as httpx
import uvicorn
from pydantic import BaseModel, Field, ValidationError

from .capability import Capability
from .media import DEFAULT_MEDIA_URL, open_media
from .serve import Instance, in_thread

logger = logging.getLogger("capstan")

HEARTBEAT_S = 60.0
GRACE_S = 10.0
_PORTS = range(8_100, 8_201)
_READY_TRIES = 10
_LONGEST_PAUSE_S = 30.0
_EVERY_ADDRESS = ("0.0.0.0", "::")


class StartFailure(Exception):
    """The instance cannot start; the message says why."""


class Settings(BaseModel):
    """The environment of an instance; empty variables count as absent."""

    router_url: str | None = Field(None, pattern="^https?://")
    router_token: str | None = None
    host: str = "127.0.0.1"
    port: int | None = Field(None, ge=0, le=65_535)
    advertise_url: str | None = Field(None, pattern="^https?://")
    media_url: str = DEFAULT_MEDIA_URL
    shared_with: str | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which callers know this machine."""
        return (self.host, urlsplit(self.advertise_url or "").hostname or self.host)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Read the variables; raise StartFailure that names each invalid one."""
        names = {name: environment.get(name.upper()) for name in cls.model_fields}
        try:
            settings = cls.model_validate({name: text for name, text in names.items() if text})
        except ValidationError as error:
            wrong = (f"{str(found['loc'][0]).upper()}: {found['msg']}" for found in error.errors())
            raise StartFailure(f"settings of the capability: {'; '.join(wrong)}") from error
        if settings.router_url is not None and settings.router_token is None:
            raise StartFailure("ROUTER_TOKEN is needed because ROUTER_URL is set")
        is_hidden = settings.host in _EVERY_ADDRESS and settings.advertise_url is None
        if settings.router_url is not None and is_hidden:
            raise StartFailure("ADVERTISE_URL is needed because HOST is every address")
        return settings


def _read_shared_with(text: str | None) -> Literal["all"] | list[str] | None:
    """The other projects that an instance serves; None if the variable is not set."""
    words = (text or "").replace(",", " ").split()
    if not words:
        return None
    return "all" if "all" in words else [word for word in words if word != "none"]


class _Server(uvicorn.Server):
    """Signals are ours: the instance deregisters before it stops to listen."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Router:
    """The requests of one instance to the router."""

    def __init__(self, settings: Settings, instance: Instance, endpoint: str) -> None:
        base = (settings.router_url or "").rstrip("/")
        self._url = f"{base}/v1/capabilities"
        self._instance = instance
        self._endpoint = endpoint
        self._shared_with = _read_shared_with(settings.shared_with)
        self._http = httpx.AsyncClient(headers={"authorization": f"Bearer {settings.router_token}"})

    async def register(self) -> None:
        capability = self._instance.capability
        body = {
            "name": capability.name,
            "version": capability.version,
            "endpoint": self._endpoint,
            "spec_url": f"{self._endpoint}/spec",
            "health_url": f"{self._endpoint}/health",
            "cost_model": capability.cost_model,
            "tags": capability.tags,
            "max_concurrency": capability.max_concurrency,
            "queue_depth": self._instance.queue_depth,
            "settle": capability.settle,
            **capability.report(),
        }
        if capability.max_resident is not None:
            body["max_resident"] = capability.max_resident
        if capability.warm_up is not None:
            body["warm_up"] = capability.warm_up
        if self._shared_with is not None:
            body["shared_with"] = self._shared_with
        await self._send("POST", self._url, body, 30)

    async def heartbeat(self) -> None:
        report = self._instance.capability.report()
        body = {"endpoint": self._endpoint, "queue_depth": self._instance.queue_depth, **report}
        await self._send("POST", f"{self._own}/heartbeat", body, 10)

    async def deregister(self) -> None:
        await self._send("DELETE", self._own, {"endpoint": self._endpoint}, 5)

    @property
    def _own(self) -> str:
        return f"{self._url}/{self._instance.capability.name}"

    async def _send(self, method: str, url: str, body: dict[str, Any], timeout: float) -> None:
        answer = await self._http.request(method, url, json=body, timeout=timeout)
        answer.raise_for_status()

    async def close(self) -> None:
        await self._http.aclose()


async def run(
    capability: Capability[..., Any],
    settings: Settings,
    stopping: asyncio.Event,
    *,
    on_ready: Callable[[str], None] = lambda endpoint: None,
    heartbeat_s: float = HEARTBEAT_S,
    grace_s: float = GRACE_S,
) -> None:
    """Run an instance until `stopping` is set; raise StartFailure if it cannot start.

    :param on_ready: receives the endpoint when the instance is registered
    """
    state = await _until(stopping, _set_up(capability))
    if stopping.is_set():
        return
    try:
        media = open_media(settings.media_url, settings.router_token)
    except ValueError as error:
        raise StartFailure(str(error)) from error
    instance = Instance(capability, media=media, state=state, hosts=settings.hosts)
    listener = _bind(settings)
    local = _local_address(listener)
    logger.info("bind: listening on %s", local)
    config = uvicorn.Config(
        instance.app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=65,  # longer than a caller keeps an idle connection
        timeout_graceful_shutdown=2,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    endpoint = (settings.advertise_url or local).rstrip("/")
    try:
        await _wait_until_ready(f"{local}/health")
        await _stay_registered(
            settings, instance, endpoint, stopping, on_ready=on_ready, heartbeat_s=heartbeat_s
        )
    finally:
        await instance.drain(grace_s)
        server.should_exit = True
        await serving
        logger.info("stop: stopped")


async def _stay_registered(
    settings: Settings,
    instance: Instance,
    endpoint: str,
    stopping: asyncio.Event,
    *,
    on_ready: Callable[[str], None],
    heartbeat_s: float,
) -> None:
    if settings.router_url is None:
        logger.info("register: not registered, ROUTER_URL is not set; serving only")
        on_ready(endpoint)
        await stopping.wait()
        return
    router = _Router(settings, instance, endpoint)
    try:
        await _register(router, stopping)
        if stopping.is_set():
            return
        facts = (instance.capability.name, instance.capability.version, settings.router_url)
        logger.info("register: %s %s at %s as %s", *facts, endpoint)
        on_ready(endpoint)
        await _beat(router, stopping, heartbeat_s)
        await _deregister(router)
    finally:
        await router.close()


async def _register(router: _Router, stopping: asyncio.Event) -> None:
    """Repeat until the router answers, at growing intervals."""
    pause = 1.0
    while not stopping.is_set():
        try:
            await _until(stopping, router.register())
            return
        except httpx.HTTPError as error:
            reason = _reason(error)
            if _is_final(error):
                raise StartFailure(f"the router refused the registration: {reason}") from error
            logger.warning("registration failed, next try in %g s: %s", pause, reason)
        await _until(stopping, asyncio.sleep(pause))
        pause = min(_LONGEST_PAUSE_S, 2 * pause)


async def _beat(router: _Router, stopping: asyncio.Event, interval_s: float) -> None:
    """Send heartbeats until the stop. A router that has forgotten the instance learns it again."""
    is_failing = False
    while True:
        await _until(stopping, asyncio.sleep(interval_s))
        if stopping.is_set():
            return
        try:
            await _until(stopping, router.heartbeat())
            if is_failing:
                logger.info("the router takes heartbeats again")
            is_failing = False
        except httpx.HTTPError as error:
            if not is_failing:
                logger.warning("heartbeat failed, ignored: %s", _reason(error))
            is_failing = True
            if isinstance(error, httpx.HTTPStatusError) and error.response.status_code == 404:
                with contextlib.suppress(httpx.HTTPError):
                    await _until(stopping, router.register())


async def _deregister(router: _Router) -> None:
    try:
        await router.deregister()
        logger.info("stop: deregistered")
    except httpx.HTTPError as error:
        logger.warning("deregistration failed, ignored: %s", _reason(error))


def _is_final(error: httpx.HTTPError) -> bool:
    if not isinstance(error, httpx.HTTPStatusError):
        return False
    status = error.response.status_code
    return status < 500 and status not in (408, 429)


def _reason(error: httpx.HTTPError) -> str:
    """The detail of a problem, else the error."""
    if isinstance(error, httpx.HTTPStatusError):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return str(error.response.json()["detail"])
    return str(error) or type(error).__name__


async def _until(stopping: asyncio.Event, work: Any) -> Any:
    """Await the work, but not beyond the stop; then the result is None."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        task.cancel()
        stop.cancel()


async def _set_up(capability: Capability[..., Any]) -> Any:
    if capability.setup is None:
        return None
    result = await in_thread(capability.setup)
    return await result if asyncio.iscoroutine(result) else result


def _bind(settings: Settings) -> socket.socket:
    """Listen at the given port, else at a random free one of the range."""
    ports = random.sample(_PORTS, len(_PORTS)) if settings.port is None else [settings.port]
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    for port in ports:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, port))
            listener.listen(2_048)
            return listener
        except OSError as error:
            listener.close()
            if settings.port is not None:
                raise StartFailure(f"port {port} of {settings.host}: {error}") from error
    raise StartFailure(f"every port from {_PORTS[0]} to {_PORTS[-1]} of {settings.host} is taken")


def _local_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    reachable = "127.0.0.1" if host in _EVERY_ADDRESS else host
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


async def _wait_until_ready(url: str) -> None:
    async with httpx.AsyncClient(timeout=1) as http:
        for attempt in range(1, _READY_TRIES + 1):
            with contextlib.suppress(httpx.HTTPError, ValueError):
                if (await http.get(url)).json()["status"] == "ok":
                    logger.info("ready: GET /health answered at attempt %d", attempt)
                    return
            await asyncio.sleep(1)
    raise StartFailure(f"GET {url} was not answered with status ok in {_READY_TRIES} attempts")


async def _run_until_signal(capability: Capability[..., Any], settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def on_signal(number: int, _: Any) -> None:
        # A second SIGTERM is no hurry: a supervisor may send it to this process and to its group.
        if stopping.is_set() and number == signal.SIGINT:
            os._exit(1)
        if not stopping.is_set():
            stopping.set()
            text = "%s: stopping; a further Ctrl-C stops at once"
            loop.call_soon_threadsafe(logger.info, text, signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    await run(capability, settings, stopping)


def serve(capability: Capability[..., Any]) -> NoReturn:
    """Serve a capability until SIGTERM or SIGINT; see `Capability.serve`."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler(sys.stdout))
        logger.setLevel(logging.INFO)
    try:
        asyncio.run(_run_until_signal(capability, Settings.read(os.environ)))
    except StartFailure as error:
        logger.error("the instance did not start: %s", error)
        sys.exit(1)
    sys.exit(0)
