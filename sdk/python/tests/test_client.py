from __future__ import annotations

import json
import os
import typing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import typing_extensions
from capstan import Capstan, CapstanError, RunFailed
from capstan import client as types
from conftest import FakeServer, Reply, Request, as_json

RUN = {"run_id": "r", "job_id": "j", "pipeline": "p", "state": "running", "cost_usd": 0}


def run_in(state: str, **others: Any) -> dict[str, Any]:
    return {**RUN, "state": state, "steps": [], **others}


@pytest.fixture
def capstan(server: FakeServer) -> typing.Iterator[Capstan]:
    with Capstan(server.url, "key", project="mine") as client:
        yield client


def test_a_run_is_started_and_awaited(server: FakeServer, capstan: Capstan) -> None:
    states = iter(["running", "running", "succeeded"])
    server.answer = lambda request: as_json(202, run_in(next(states), output={"n": 1}))
    run = capstan.run("p", job={"a": 1}, alias="production", budget_usd=2)
    assert run.state == "running"
    assert run.wait().output == {"n": 1}
    started, *read = server.requests
    assert (started.method, started.path) == ("POST", "/v1/runs")
    assert started.json() == {
        "pipeline": "p",
        "alias": "production",
        "job": {"a": 1},
        "budget_ceiling_usd": 2,
    }
    assert started.headers["authorization"] == "Bearer key"
    assert started.headers["x-project-id"] == "mine"
    assert [request.path for request in read] == ["/v1/runs/r", "/v1/runs/r"]


def test_a_run_that_fails_has_no_result(server: FakeServer, capstan: Capstan) -> None:
    error = {"code": "step_failed", "message": "the disk is full"}
    server.answer = lambda request: as_json(202, run_in("failed", error=error))
    with pytest.raises(RunFailed, match="step_failed: the disk is full") as caught:
        capstan.run({"pipeline": "p", "version": "1", "steps": []}).result()
    assert caught.value.run.state == "failed"
    assert "definition" in server.requests[0].json()


def test_a_wait_may_be_limited(server: FakeServer, capstan: Capstan) -> None:
    server.answer = lambda request: as_json(202, run_in("running"))
    with pytest.raises(TimeoutError, match="run r is running"):
        capstan.run("p").wait(timeout=0)


def test_files_make_a_job_before_the_run(
    server: FakeServer, capstan: Capstan, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    server.answer = lambda request: as_json(
        202, {"job_id": "j"} if request.path == "/v1/jobs" else run_in("running")
    )
    capstan.run("p", job={"at": "media://job/in.png"}, files={"in.png": tmp_path / "a.png"})
    job, file, run = server.requests
    assert job.json() == {"job": {"at": "media://job/in.png"}}
    assert (file.path, file.body) == ("/v1/media/j/in.png", b"picture")
    assert file.headers["content-type"] == "image/png"
    assert run.json() == {"pipeline": "p", "job_id": "j"}


def test_files_are_checked_before_anything_is_made(server: FakeServer, capstan: Capstan) -> None:
    with pytest.raises(FileNotFoundError):
        capstan.run("p", files={"a.png": "/nowhere/a.png"})
    assert server.requests == []


def test_a_start_is_repeated_under_one_key_while_the_server_is_busy(
    server: FakeServer, capstan: Capstan
) -> None:
    statuses = iter([503, 202])
    server.answer = lambda request: as_json(next(statuses), run_in("running"))
    capstan.run("p")
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_request_that_might_act_twice_is_not_repeated(
    server: FakeServer, capstan: Capstan
) -> None:
    server.answer = lambda request: as_json(503, {"code": "overloaded", "detail": "busy"})
    with pytest.raises(CapstanError, match="overloaded: busy"):
        capstan.call("shout", {"text": "a"})
    assert len(server.requests) == 1


def test_an_error_carries_the_problem(server: FakeServer, capstan: Capstan) -> None:
    problem = {"code": "not_found", "detail": "no run r", "request_id": "q"}
    server.answer = lambda request: as_json(404, problem)
    with pytest.raises(CapstanError) as caught:
        capstan.get("r")
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    assert (caught.value.detail, caught.value.problem) == ("no run r", problem)


def test_a_server_that_is_away_has_a_code_too(server: FakeServer, capstan: Capstan) -> None:
    server.close()
    with pytest.raises(CapstanError) as caught:
        capstan.cancel("r")
    assert caught.value.code == "unreachable"


def test_a_file_that_is_refused_has_the_problem_too(
    server: FakeServer, capstan: Capstan, tmp_path: Path
) -> None:
    server.answer = lambda request: as_json(403, {"code": "scope_missing", "detail": "media:read"})
    with pytest.raises(CapstanError, match="media:read") as caught:
        capstan.download("media://job/a.png", tmp_path / "a.png")
    assert (caught.value.status, caught.value.code) == (403, "scope_missing")
    server.answer = lambda request: as_json(503, {})
    with pytest.raises(CapstanError) as caught:
        capstan.download("media://job/a.png", tmp_path / "a.png")
    assert caught.value.code == "unreachable"


def frame(seq: int, type: str) -> bytes:
    data = json.dumps({"seq": seq, "type": type, "run_id": "r", "data": {}})
    return f": open\n\nid: {seq}\nevent: {type}\ndata: {data}\n\n".encode()


def test_a_log_continues_where_its_connection_broke(server: FakeServer, capstan: Capstan) -> None:
    streams = iter([frame(1, "run.started"), frame(2, "step.started") + frame(3, "run.succeeded")])
    headers = {"content-type": "text/event-stream"}
    server.answer = lambda request: (200, headers, next(streams))
    assert [event["seq"] for event in capstan.events("r")] == [1, 2, 3]
    assert [request.path for request in server.requests] == [
        "/v1/runs/r/events?after=0",
        "/v1/runs/r/events?after=1",
    ]


def test_a_review_is_decided_by_its_id_as_it_is_now(server: FakeServer, capstan: Capstan) -> None:
    review = {"review_id": "rev_1", "version": 4, "state": "open"}
    server.answer = lambda request: as_json(200, review)
    capstan.decide("rev_1", "approve")
    read, decided = server.requests
    assert (read.method, read.path) == ("GET", "/v1/reviews/rev_1")
    assert decided.headers["if-match"] == '"4"'


def test_a_review_is_decided_as_it_was_read(server: FakeServer, capstan: Capstan) -> None:
    review = {"review_id": "v", "version": 3, "actions": ["approve"]}

    def answer(request: Request) -> Reply:
        return as_json(200, {"items": [review]} if request.method == "GET" else review)

    server.answer = answer
    (read,) = capstan.reviews(run_id="r")
    capstan.decide(read, "approve", proposal=0)
    listed, decided = server.requests
    assert listed.path == "/v1/reviews?state=open&order=due_at&limit=200&run_id=r"
    assert decided.path == "/v1/reviews/v/decision"
    assert decided.headers["if-match"] == '"3"'
    assert decided.json() == {"action": "approve", "proposal": 0}


def test_reviews_are_listed_to_the_last_page(server: FakeServer, capstan: Capstan) -> None:
    pages = {None: "one", "one": "two", "two": None}

    def answer(request: Request) -> Reply:
        cursor = parse_qs(urlsplit(request.path).query).get("cursor", [None])[0]
        return as_json(200, {"items": [{"review_id": cursor}], "next_cursor": pages[cursor]})

    server.answer = answer
    assert [review["review_id"] for review in capstan.reviews()] == [None, "one", "two"]
    assert [request.path.count("limit=200") for request in server.requests] == [1, 1, 1]


OPENAPI = os.environ.get("OPENAPI_FILE")
ANSWERS = {
    "RunStep": types.StepData,
    "Run": types.RunData,
    "RunEvent": types.RunEvent,
    "PlannedCost": types.PlannedCost,
    "Plan": types.Plan,
    "ExecAnswer": types.ExecAnswer,
    "CostSummary": types.CostSummary,
    "Review": types.Review,
}


@pytest.mark.skipif(OPENAPI is None, reason="OPENAPI_FILE names no document of a server")
@pytest.mark.parametrize("name", ANSWERS)
def test_the_typed_dicts_are_those_of_the_api(name: str) -> None:
    schemas = json.loads(Path(OPENAPI or "").read_text())["components"]["schemas"]
    schema = next(schemas[key] for key in (name, f"{name}Output") if key in schemas)
    hints = typing_extensions.get_type_hints(ANSWERS[name], include_extras=True)
    optional = {
        field
        for field, hint in hints.items()
        if typing_extensions.get_origin(hint) is typing_extensions.NotRequired
    }
    assert hints.keys() <= schema["properties"].keys()
    assert hints.keys() - optional <= set(schema["required"])
