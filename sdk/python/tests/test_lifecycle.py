from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import httpx2 as httpx
import pytest
from capstan import Call, capability
from capstan.lifecycle import Settings, StartFailure
from conftest import DEADLINE_S, FakeServer, Request, Serve, as_json
from pydantic import BaseModel


class Nothing(BaseModel):
    pass


@capability(name="rest", version="2", tags=["gpu"], cost=("per_call", 0.5), max_concurrency=3)
def rest(job: Nothing, call: Call) -> Nothing:
    return Nothing()


def at(server: FakeServer) -> dict[str, str]:
    return {"ROUTER_URL": f"{server.url}/", "ROUTER_TOKEN": "token"}


def paths(requests: list[Request]) -> list[str]:
    return [f"{request.method} {request.path}" for request in requests]


REGISTER = "POST /v1/capabilities"
BEAT = "POST /v1/capabilities/rest/heartbeat"
DEREGISTER = "DELETE /v1/capabilities/rest"


def test_an_instance_registers_and_deregisters_with_its_facts(
    serve: Serve, server: FakeServer
) -> None:
    served = serve(rest, at(server)).wait_until_ready()
    served.stop()
    assert paths(server.requests) == [REGISTER, DEREGISTER]
    endpoint = served.endpoint
    assert server.requests[0].headers["authorization"] == "Bearer token"
    assert server.requests[0].json() == {
        "name": "rest",
        "version": "2",
        "endpoint": endpoint,
        "spec_url": f"{endpoint}/spec",
        "health_url": f"{endpoint}/health",
        "cost_model": {"type": "per_call", "rate_usd": 0.5},
        "tags": ["gpu"],
        "max_concurrency": 3,
        "queue_depth": 0,
        "settle": "computed",
    }
    assert server.requests[1].json() == {"endpoint": endpoint}
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{endpoint}/health")


def test_it_registers_its_warm_up(serve: Serve, server: FakeServer) -> None:
    warm_up = {"input": {"seconds": 0}, "timeout_s": 300}
    own = capability(name="rest", version="2", warm_up=warm_up)
    serve(own(rest.work), at(server)).wait_until_ready()
    assert server.requests[0].json()["warm_up"] == warm_up


@pytest.mark.parametrize(
    ("text", "shared_with"),
    [
        ("all", "all"),
        ("prj_a,all", "all"),
        ("prj_a,prj_b", ["prj_a", "prj_b"]),
        (" prj_a ,\n\tprj_b ", ["prj_a", "prj_b"]),
        ("none", []),
        ("none prj_a", ["prj_a"]),
        ("", None),
        (" , ", None),
    ],
)
def test_it_registers_the_projects_that_it_serves(
    serve: Serve, server: FakeServer, text: str, shared_with: Any
) -> None:
    serve(rest, {**at(server), "SHARED_WITH": text}).wait_until_ready()
    assert server.requests[0].json().get("shared_with", None) == shared_with


def test_it_is_set_up_before_it_registers(serve: Serve, server: FakeServer) -> None:
    seen: list[int] = []
    own = capability(name="rest", version="2", setup=lambda: seen.append(len(server.requests)))
    serve(own(rest.work), at(server)).wait_until_ready()
    assert seen == [0]
    assert paths(server.requests) == [REGISTER]


def test_a_router_that_is_away_is_asked_again(serve: Serve, server: FakeServer) -> None:
    statuses = iter([503, 200])
    server.answer = lambda request: as_json(
        next(statuses) if paths([request]) == [REGISTER] else 200, {}
    )
    serve(rest, at(server)).wait_until_ready()
    assert paths(server.requests) == [REGISTER, REGISTER]


def test_a_refused_registration_ends_the_start_with_its_reason(
    serve: Serve, server: FakeServer
) -> None:
    server.answer = lambda request: as_json(403, {"detail": "the name belongs to another project"})
    served = serve(rest, at(server))
    served.join()
    assert isinstance(served.error, StartFailure)
    assert "the name belongs to another project" in str(served.error)
    assert paths(server.requests) == [REGISTER]


def test_heartbeats_go_on_after_a_failed_one(serve: Serve, server: FakeServer) -> None:
    server.answer = lambda request: as_json(500 if request.path.endswith("heartbeat") else 200, {})
    served = serve(rest, at(server), heartbeat_s=0.01).wait_until_ready()
    server.wait_for(lambda seen: paths(seen).count(BEAT) >= 3)
    assert paths(server.requests).count(REGISTER) == 1
    beat = next(request for request in server.requests if request.path.endswith("heartbeat"))
    assert beat.json() == {"endpoint": served.endpoint, "queue_depth": 0}


def test_a_router_that_has_forgotten_the_instance_learns_it_again(
    serve: Serve, server: FakeServer
) -> None:
    server.answer = lambda request: as_json(404 if request.path.endswith("heartbeat") else 200, {})
    serve(rest, at(server), heartbeat_s=0.01).wait_until_ready()
    server.wait_for(lambda seen: paths(seen).count(REGISTER) >= 2)


def test_a_failed_deregistration_is_ignored(serve: Serve, server: FakeServer) -> None:
    server.answer = lambda request: as_json(500 if request.method == "DELETE" else 200, {})
    served = serve(rest, at(server)).wait_until_ready()
    served.stop()
    assert served.error is None


class Holding:
    """A call that ends when it may, or when it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.go, self.answers = threading.Event(), threading.Event(), list[Any]()
        self.was_cancelled = False

        @capability(name="rest", version="2")
        def hold(job: Nothing, call: Call) -> Nothing:
            self.begun.set()
            while not self.go.wait(0.01) and not call.cancelled.is_set():
                pass
            self.was_cancelled = call.cancelled.is_set()
            return Nothing()

        self.capability = hold

    def call(self, endpoint: str) -> threading.Thread:
        def post() -> None:
            self.answers.append(httpx.post(f"{endpoint}/exec", json={}, timeout=DEADLINE_S))

        caller = threading.Thread(target=post)
        caller.start()
        assert self.begun.wait(DEADLINE_S)
        return caller


def test_an_instance_that_stops_deregisters_first_and_lets_its_calls_end(
    serve: Serve, server: FakeServer
) -> None:
    holding = Holding()
    served = serve(holding.capability, at(server), grace_s=DEADLINE_S).wait_until_ready()
    caller = holding.call(served.endpoint)
    served.begin_stop()
    server.wait_for(lambda seen: DEREGISTER in paths(seen))
    url, sent = f"{served.endpoint}/exec", {"content-type": "application/json"}
    while (late := httpx.post(url, content=b"{", headers=sent)).status_code == 422:
        pass  # deregistered, and about to refuse calls
    assert (late.status_code, late.json()["error"]) == (503, "the instance is stopping")
    holding.go.set()
    served.join()
    caller.join()
    assert holding.answers[0].json() == {"ok": True, "output": {}}


def test_calls_beyond_the_grace_period_are_cancelled_and_answered_503(serve: Serve) -> None:
    holding = Holding()
    served = serve(holding.capability, grace_s=0.05).wait_until_ready()
    caller = holding.call(served.endpoint)
    served.stop()
    caller.join()
    assert holding.answers[0].status_code == 503
    assert holding.was_cancelled


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({"ROUTER_URL": "router:80"}, "ROUTER_URL"),
        ({"ROUTER_URL": "http://router"}, "ROUTER_TOKEN is needed"),
        ({"PORT": "many"}, "PORT"),
        (
            {"ROUTER_URL": "http://router", "ROUTER_TOKEN": "t", "HOST": "0.0.0.0"},
            "ADVERTISE_URL is needed",
        ),
    ],
)
def test_settings_that_cannot_work_are_named(environment: dict[str, str], error: str) -> None:
    with pytest.raises(StartFailure, match=error):
        Settings.read(environment)


def test_a_port_that_is_taken_and_a_store_that_is_unknown_end_the_start(serve: Serve) -> None:
    port = serve(rest).wait_until_ready().endpoint.rsplit(":", 1)[1]
    for environment, error in (({"PORT": port}, f"port {port}"), ({"MEDIA_URL": "ftp://x"}, "ftp")):
        served = serve(rest, environment)
        served.join()
        assert isinstance(served.error, StartFailure)
        assert error in str(served.error)


HELD = """
import sys
from pydantic import BaseModel
from capstan import Call, capability

class Nothing(BaseModel):
    pass

@capability(name="held", version="1")
def held(job: Nothing, call: Call) -> Nothing:
    print("begun", flush=True)
    sys.stdin.readline()
    return Nothing()

held.serve()
"""


class Process:
    """An instance as a process, with an open call."""

    def __init__(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-u", "-c", HELD],
            env={"PORT": "0", "PYTHONPATH": ":".join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        endpoint = self.read_until("bind: ").split()[-1]
        self.read_until("register: ")
        self.answers: list[Any] = []
        self._caller = threading.Thread(target=self._call, args=(endpoint,))
        self._caller.start()
        self.read_until("begun")

    def _call(self, endpoint: str) -> None:
        try:
            self.answers.append(httpx.post(f"{endpoint}/exec", json={}, timeout=DEADLINE_S).json())
        except httpx.TransportError as error:
            self.answers.append(error)

    def read_until(self, begin: str) -> str:
        assert self.child.stdout is not None
        return next(line for line in self.child.stdout if line.startswith(begin))

    def release(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write("go\n")
        self.child.stdin.flush()

    def wait(self) -> int:
        code = self.child.wait(DEADLINE_S)
        self._caller.join(DEADLINE_S)
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            pipe.close()
        return code


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_supervisor_that_repeats_a_signal_does_not_end_open_calls(first: signal.Signals) -> None:
    process = Process()
    process.child.send_signal(first)
    process.read_until(f"{first.name}: stopping")
    process.child.send_signal(signal.SIGTERM)
    process.release()
    assert process.wait() == 0
    assert process.answers == [{"ok": True, "output": {}}]


def test_a_second_interrupt_ends_the_process_at_once() -> None:
    process = Process()
    process.child.send_signal(signal.SIGINT)
    process.read_until("SIGINT: stopping")
    process.child.send_signal(signal.SIGINT)
    assert process.wait() == 1
    assert isinstance(process.answers[0], httpx.TransportError)
