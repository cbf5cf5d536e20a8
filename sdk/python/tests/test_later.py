from __future__ import annotations

import json
from typing import Any

import httpx2 as httpx
import pytest
from capstan import Call, CallFailure, Capability, capability, later, send_result
from conftest import DEADLINE_S, FakeServer, Request, Serve, as_json
from pydantic import BaseModel


class Job(BaseModel):
    reports: bool = False


class Out(BaseModel):
    text: str


def accepts(job: Job, call: Call) -> Out:
    if job.reports:
        call.progress(1)
    later(call)


def make(work: Any = accepts) -> Capability[..., Any]:
    return capability(name="test", version="1", answers_later="freed")(work)


def post(endpoint: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
    return httpx.post(f"{endpoint}/exec", json=body, headers=headers, timeout=DEADLINE_S)


ADDRESS = {"x-callback-url": "http://capstan.test/v1/callbacks/x"}


def test_a_call_is_accepted_if_it_has_an_address(serve: Serve) -> None:
    endpoint = serve(make()).wait_until_ready().endpoint
    assert make().spec["async"] == {"slot": "freed"}
    assert post(endpoint, {}, ADDRESS).status_code == 202
    refused = post(endpoint, {}, {})
    assert (refused.status_code, refused.headers["x-error-code"]) == (422, "callback_missing")
    lines = post(endpoint, {"reports": True}, {**ADDRESS, "accept": "application/x-ndjson"})
    assert (lines.status_code, json.loads(lines.text.splitlines()[-1])["status"]) == (200, 422)


@pytest.mark.parametrize(
    ("status", "receipt"), [(204, "accepted"), (409, "again"), (410, "late"), (404, "unknown")]
)
def test_a_result_is_sent_again_while_it_is_not_received(
    server: FakeServer, status: int, receipt: str
) -> None:
    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        return as_json(503, {}) if len(server.requests) == 1 else (status, {}, b"")

    server.answer = answer
    assert send_result(f"{server.url}/v1/callbacks/x", Out(text="done")) == receipt
    sent = [request.json() for request in server.requests]
    assert sent == [{"ok": True, "output": {"text": "done"}}] * 2


def test_a_failure_is_sent_with_its_parts_and_a_refusal_raises(server: FakeServer) -> None:
    server.answer = lambda request: (204, {}, b"")
    failed = CallFailure(503, "busy", retry_after=1.5, code="gpu_gone")
    assert send_result(server.url, failed) == "accepted"
    assert server.requests[0].json() == {
        "ok": False,
        "error": "busy",
        "status": 503,
        "retry_after_s": 2,
        "error_code": "gpu_gone",
    }
    server.answer = lambda request: as_json(413, {})
    with pytest.raises(RuntimeError, match="HTTP 413"):
        send_result(server.url, {"text": "x"})
