from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest
from capstan import Call, CallCancelled, CallFailure, Capability, Instance, capability
from conftest import DEADLINE_S, FakeServer, Serve
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount

JSON = {"content-type": "application/json"}
LINES = {"accept": "application/json, application/x-ndjson;q=0.9"}


class Job(BaseModel):
    n: int = 0
    text: str = ""


class Out(BaseModel):
    n: float


def of(work: Callable[[Job, Call], Out], **options: Any) -> Capability[..., Any]:
    return capability(name="test", version="1", **options)(work)


def post(endpoint: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    sent = {**JSON, **(headers or {})}
    return httpx.post(f"{endpoint}/exec", content=content, headers=sent, timeout=DEADLINE_S)


def raising(error: Exception) -> Callable[[Job, Call], Out]:
    def work(job: Job, call: Call) -> Out:
        raise error

    return work


def test_an_answer_is_a_document_and_health_tells_the_queue(serve: Serve) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(job: Job, call: Call) -> Out:
        begun.set()
        go.wait(DEADLINE_S)
        return Out(n=job.n)

    endpoint = serve(of(work)).wait_until_ready().endpoint
    answers: list[httpx.Response] = []
    caller = threading.Thread(target=lambda: answers.append(post(endpoint, {"n": 3})))
    caller.start()
    assert begun.wait(DEADLINE_S)
    health = httpx.get(f"{endpoint}/health").json()
    assert (health["status"], health["queue_depth"]) == ("ok", 1)
    go.set()
    caller.join()
    assert answers[0].json() == {"ok": True, "output": {"n": 3}}
    assert httpx.get(f"{endpoint}/health").json()["queue_depth"] == 0


def test_no_more_calls_run_than_the_limit(serve: Serve) -> None:
    lock, running, most = threading.Lock(), [0], [0]
    both = threading.Barrier(2)

    def work(job: Job, call: Call) -> Out:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        both.wait(DEADLINE_S)  # two at a time, or none
        with lock:
            running[0] -= 1
        return Out(n=job.n)

    endpoint = serve(of(work, max_concurrency=2)).wait_until_ready().endpoint
    callers = [threading.Thread(target=post, args=(endpoint,)) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert most[0] == 2


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (ValueError("no such colour"), 422, {}),
        (CallFailure(503, "busy", retry_after=1.2), 503, {"retry-after": "2"}),
        (
            CallFailure(502, "the disk is full", code="disk_full"),
            502,
            {"x-error-code": "disk_full"},
        ),
    ],
)
def test_what_the_function_raises_chooses_the_status(
    serve: Serve, error: Exception, status: int, headers: dict[str, str]
) -> None:
    answer = post(serve(of(raising(error))).wait_until_ready().endpoint)
    assert answer.status_code == status
    assert answer.json() == {"ok": False, "error": str(error)}
    assert {name: answer.headers[name] for name in headers} == headers


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (RuntimeError("CUDA error"), "CUDA error"),
        ("sdxl", "it returned str, and a list of texts is needed"),
        ([1], "it returned list, and a list of texts is needed"),
    ],
)
def test_a_result_is_kept_and_one_line_logged_when_resident_fails(
    serve: Serve, server: FakeServer, caplog: pytest.LogCaptureFixture, found: Any, reason: str
) -> None:
    def resident() -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    router = {"ROUTER_URL": server.url, "ROUTER_TOKEN": "token"}
    served = serve(of(lambda_of(1), resident=resident), router).wait_until_ready()
    assert post(served.endpoint).json() == {"ok": True, "output": {"n": 1}}
    assert httpx.get(f"{served.endpoint}/health").status_code == 200
    assert "resident" not in server.requests[0].json()
    logged = [line for line in caplog.messages if "resident" in line]
    assert logged == [f"resident failed, and is left out: {reason}"]


def test_a_number_that_json_cannot_hold_is_no_answer(serve: Serve) -> None:
    endpoint = serve(of(lambda_nan)).wait_until_ready().endpoint
    answer = post(endpoint)
    assert (answer.status_code, answer.json()["ok"]) == (422, False)


def lambda_nan(job: Job, call: Call) -> Out:
    return Out(n=float("nan"))


def test_a_body_above_the_limit_is_refused_without_a_call() -> None:
    async def ask(length: dict[str, str]) -> httpx.Response:
        instance = Instance(of(raising(AssertionError())), body_limit=1_000)
        transport = httpx.ASGITransport(app=instance.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:

            async def pieces() -> Any:
                for _ in range(20):
                    yield b" " * 100

            return await http.post("/exec", content=pieces(), headers={**JSON, **length})

    for length in ({}, {"content-length": "2000"}):
        answer = asyncio.run(ask(length))
        assert answer.status_code == 413
        assert answer.json() == {
            "ok": False,
            "error": "the body is larger than the allowed 1000 bytes",
        }


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/exec", JSON, 200),
        ("POST", "/exec", {"content-type": "Application/JSON ; charset=utf-8"}, 200),
        ("POST", "/exec", {**JSON, "host": "localhost:8100"}, 200),
        ("POST", "/exec", {**JSON, "host": "[::1]:8100"}, 200),
        ("POST", "/exec", {**JSON, "host": "10.0.0.7"}, 200),
        ("GET", "/health", {"host": "Parts.Example:8443"}, 200),
        ("POST", "/exec", {**JSON, "origin": "https://evil.example"}, 403),
        ("POST", "/exec", {**JSON, "origin": "null"}, 403),
        ("POST", "/exec", {**JSON, "sec-fetch-site": "cross-site"}, 403),
        ("GET", "/spec", {"sec-fetch-site": "same-origin"}, 403),
        ("OPTIONS", "/exec", {"origin": "https://evil.example"}, 403),
        ("POST", "/exec", {**JSON, "host": "evil.example"}, 403),
        ("GET", "/spec", {"host": "evil.example:8100"}, 403),
        ("GET", "/health", {"host": "127.0.0.1.evil.example"}, 403),
        ("GET", "/health", {"host": "["}, 403),
        ("POST", "/exec", {}, 415),
        ("POST", "/exec", {"content-type": "text/plain"}, 415),
        ("POST", "/exec", {"content-type": "text/plain;application/json"}, 415),
    ],
)
def test_what_a_browser_sends_is_refused(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    async def ask() -> int:
        app = Instance(of(lambda_of(1)), hosts=["Parts.example"]).app
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1"
        ) as http:
            answer = await http.request(method, path, content=b"{}", headers=headers)
            return answer.status_code

    assert asyncio.run(ask()) == status


def test_several_capabilities_are_mounted_in_one_app() -> None:
    async def ask(path: str) -> Any:
        mounts = [Mount(f"/{n}", Instance(of(lambda_of(n)), hosts=["test"]).app) for n in (1, 2)]
        transport = httpx.ASGITransport(app=Starlette(routes=mounts))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            return (await http.post(path, json={})).json()

    assert asyncio.run(ask("/1/exec")) == {"ok": True, "output": {"n": 1}}
    assert asyncio.run(ask("/2/exec")) == {"ok": True, "output": {"n": 2}}


def lambda_of(n: int) -> Callable[[Job, Call], Out]:
    def work(job: Job, call: Call) -> Out:
        return Out(n=n)

    return work


def tell(job: Job, call: Call) -> Out:
    call.progress(0, "begins")
    call.progress(0.5, "dropped: too soon")
    call.log.warn("a word")
    call.delta("x" * 2_000)
    call.progress(1)
    if job.n < 0:
        raise CallFailure(503, "busy", retry_after=2, code="full")
    return Out(n=job.n)


def lines_of(answer: httpx.Response) -> list[Any]:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_caller_that_accepts_lines_reads_progress_and_log(serve: Serve) -> None:
    endpoint = serve(of(tell)).wait_until_ready().endpoint
    begins = {"progress": 0, "message": "begins"}
    word = {"log": {"level": "warn", "message": "a word"}}
    told = [begins, word, {"progress": 1}]
    assert lines_of(post(endpoint, {}, LINES)) == told + [{"ok": True, "output": {"n": 0}}]
    failed = {"ok": False, "error": "busy", "status": 503, "retry_after_s": 2, "error_code": "full"}
    assert lines_of(post(endpoint, {"n": -1}, LINES)) == told + [failed]
    assert post(endpoint).json() == {"ok": True, "output": {"n": 0}}


def test_a_caller_that_asks_for_parts_reads_them(serve: Serve) -> None:
    endpoint = serve(of(tell)).wait_until_ready().endpoint
    lines = lines_of(post(endpoint, {}, {**LINES, "x-stream": "delta"}))
    assert [len(line["delta"]) for line in lines if "delta" in line] == [1_250, 750]


def test_the_headers_of_a_call_are_its_facts(serve: Serve) -> None:
    seen: list[Call] = []

    def work(job: Job, call: Call) -> Out:
        seen.append(call)
        return Out(n=0)

    endpoint = serve(of(work, setup=lambda: "weights")).wait_until_ready().endpoint
    headers = {
        "idempotency-key": "k",
        "x-attempt": "3",
        "x-deadline": "2026-11-26T10:00:00.5Z",
        "traceparent": "t",
        "tracestate": "a=1",
        "x-previous-fault": '{"code":"output_invalid","message":"n is \\u5fc5\\u8981"}',
    }
    post(endpoint, {}, headers)
    (call,) = seen
    assert (call.idempotency_key, call.attempt) == ("k", 3)
    assert call.previous_fault == {"code": "output_invalid", "message": "n is 必要"}
    for text in ("", "no JSON", "7", "[]", '{"code":1,"message":"m"}'):
        assert Call({"x-previous-fault": text}).previous_fault is None
    assert (call.traceparent, call.tracestate) == ("t", "a=1")
    assert call.deadline is not None and call.deadline.isoformat().startswith("2026-11-26T10:00:00")
    assert call.state == "weights"


class Gone:
    """A caller that closes the connection."""

    def __init__(self, endpoint: str) -> None:
        self._client = httpx.Client()
        self._stream = self._client.stream("POST", f"{endpoint}/exec", json={}, headers=LINES)

    def leave_after_the_first_line(self) -> None:
        with self._stream as answer:
            next(answer.iter_lines())
        self._client.close()


def test_a_thread_sees_that_its_caller_is_gone_and_keeps_its_slot_until_it_ends(
    serve: Serve,
) -> None:
    cancelled, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work(job: Job, call: Call) -> Out:
        if job.n == 1:
            assert ended.is_set()
            return Out(n=1)
        call.progress(0)
        assert call.cancelled.wait(DEADLINE_S)
        cancelled.set()
        go.wait(DEADLINE_S)
        ended.set()
        with pytest.raises(CallCancelled):
            call.check()
        return Out(n=0)

    endpoint = serve(of(work)).wait_until_ready().endpoint
    Gone(endpoint).leave_after_the_first_line()
    assert cancelled.wait(DEADLINE_S)
    assert httpx.get(f"{endpoint}/health").json()["queue_depth"] == 1
    go.set()
    assert post(endpoint, {"n": 1}).json() == {"ok": True, "output": {"n": 1}}


def test_an_async_function_is_cancelled_where_it_waits(serve: Serve) -> None:
    ended = threading.Event()

    async def work(job: Job, call: Call) -> Out:
        call.progress(0)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Out(n=0)

    endpoint = serve(of(work)).wait_until_ready().endpoint
    Gone(endpoint).leave_after_the_first_line()
    assert ended.wait(DEADLINE_S)


def test_a_transfer_in_the_event_loop_is_refused(serve: Serve) -> None:
    async def work(job: Job, call: Call) -> Out:
        call.download("media://job/a.txt")
        return Out(n=0)

    answer = post(serve(of(work)).wait_until_ready().endpoint)
    assert "await asyncio.to_thread(call.download" in answer.json()["error"]


def test_a_call_that_takes_too_long_is_answered_504_and_cancelled(serve: Serve) -> None:
    cancelled = threading.Event()

    def work(job: Job, call: Call) -> Out:
        assert call.cancelled.wait(DEADLINE_S)
        cancelled.set()
        return Out(n=0)

    answer = post(serve(of(work, timeout=0.05)).wait_until_ready().endpoint)
    assert answer.status_code == 504
    assert answer.json()["error"] == "the call took longer than 0.05 s"
    assert cancelled.wait(DEADLINE_S)


def test_the_files_of_a_call_are_deleted_with_it(serve: Serve) -> None:
    seen: list[Any] = []

    def work(job: Job, call: Call) -> Out:
        call.upload(b"hello", "media://job/a.txt")
        copy = call.download("media://job/a.txt")
        seen.append((copy, copy.read_bytes()))
        return Out(n=0)

    assert post(serve(of(work)).wait_until_ready().endpoint).status_code == 200
    ((copy, content),) = seen
    assert content == b"hello"
    assert not copy.parent.exists()
