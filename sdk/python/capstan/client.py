"""A client of Capstan's API: start runs, follow them, call capabilities, read costs and reviews.

Answers are the JSON of the API, described by typed dicts. A newer server may add fields.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Literal, TypedDict, cast
from urllib.parse import quote

import httpx2 as httpx
from typing_extensions import NotRequired

from .errors import CallFailure
from .media import MediaError, guess_type, open_media, read_reference

Json = dict[str, Any]
Priority = Literal["interactive", "standard", "batch"]

_ENDED = frozenset({"succeeded", "failed", "cancelled"})
_LAST_EVENTS = frozenset({"run.succeeded", "run.failed", "run.cancelled"})
_TRIES = 4
_LONGEST_PAUSE_S = 2.0
_LONGEST_RETRY_S = 30.0


class Failure(TypedDict):
    """Why a run or a step failed."""

    code: str
    message: str


class StepData(TypedDict):
    """A step of a run."""

    id: str
    state: str
    endpoint: NotRequired[str]
    attempts: int
    cost_usd: float
    error: NotRequired[Failure]


class RunData(TypedDict):
    """A run with its steps."""

    run_id: str
    job_id: str
    pipeline: str
    version: str
    state: str
    cost_usd: float
    steps: list[StepData]
    output: NotRequired[Any]
    error: NotRequired[Failure]
    finished_at: str | None


class RunEvent(TypedDict):
    """An entry of the log of a run."""

    seq: int
    at: str
    run_id: str
    type: str
    step_id: NotRequired[str]
    attempt: NotRequired[int]
    data: Any


class PlannedCost(TypedDict):
    """The least, the expected and the highest cost in USD."""

    min: float
    expected: float
    worst: float


class Plan(TypedDict):
    """What a run would do and cost."""

    pipeline: str
    version: str
    steps: list[Json]
    cost_usd: PlannedCost
    missing: list[str]
    within_ceiling: bool
    findings: list[Json]


class ExecAnswer(TypedDict):
    """The output of a call, and how its instance was chosen."""

    ok: Literal[True]
    output: Any
    routing: Json


class CostSummary(TypedDict):
    """The costs of the project."""

    today_spend_usd: float
    daily_limit_usd: float
    reserved_usd: float
    period: str
    spend_usd: float
    by_capability: list[Json]


class Review(TypedDict):
    """A question to a person. `version` is that of the decision."""

    review_id: str
    kind: str
    reason: str
    state: str
    run_id: NotRequired[str]
    step_id: NotRequired[str]
    version: int
    payload: Json
    actions: list[str]


class CapstanError(Exception):
    """The API refused a request, or did not answer.

    `code` is a name of docs/reference/errors.md, or ``unreachable``; `problem` is the whole answer.
    """

    def __init__(self, status: int, code: str, detail: str, problem: Json | None = None) -> None:
        """Keep the parts of the problem."""
        super().__init__(f"{code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.problem = problem or {}


class RunFailed(CapstanError):
    """A run ended without success; `run` is the run."""

    def __init__(self, run: Run) -> None:
        """Take code and detail from the error of the run."""
        error = run.data.get("error", {"code": run.state, "message": f"the run is {run.state}"})
        super().__init__(0, error["code"], error["message"])
        self.run = run


class Run:
    """A run. `data` is its last known state; `refresh` and `wait` renew it."""

    def __init__(self, capstan: Capstan, data: RunData) -> None:
        """Hold a run that the API answered."""
        self._capstan = capstan
        self.data = data

    def __repr__(self) -> str:
        """Name pipeline and state."""
        return f"Run({self.run_id}, {self.data['pipeline']}, {self.state})"

    @property
    def run_id(self) -> str:
        """Identify the run."""
        return self.data["run_id"]

    @property
    def state(self) -> str:
        """Tell the state, such as ``running`` or ``succeeded``."""
        return self.data["state"]

    @property
    def output(self) -> Any:
        """Return the output of a run that succeeded, else None."""
        return self.data.get("output")

    @property
    def cost_usd(self) -> float:
        """Tell the cost so far."""
        return self.data["cost_usd"]

    def refresh(self) -> Run:
        """Read the run again."""
        self.data = self._capstan.get(self.run_id).data
        return self

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run has ended; raise TimeoutError if it has not in `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.1
        while self.refresh().state not in _ENDED:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"run {self.run_id} is {self.state} after {timeout:g} s")
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE_S, 1.5 * pause)
        return self

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the output; raise RunFailed if the run does not succeed."""
        if self.wait(timeout).state != "succeeded":
            raise RunFailed(self)
        return self.output

    def events(self, after: int = 0) -> Iterator[RunEvent]:
        """Follow the log of the run to its end."""
        return self._capstan.events(self.run_id, after)

    def cancel(self, reason: str | None = None) -> Run:
        """Ask the run to end; its open calls are cancelled."""
        self.data = self._capstan.cancel(self.run_id, reason).data
        return self


class Capstan:
    """Capstan's API. Without arguments, CAPSTAN_URL, CAPSTAN_API_KEY and CAPSTAN_PROJECT decide.

    A request that can be repeated safely is repeated while the server is away or busy.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, project: str | None = None
    ) -> None:
        """Connect at the first request."""
        url = url or os.environ.get("CAPSTAN_URL") or "http://127.0.0.1:7400"
        key = key or os.environ.get("CAPSTAN_API_KEY")
        project = project or os.environ.get("CAPSTAN_PROJECT")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        if project is not None:
            headers["x-project-id"] = project
        self._media = open_media(url, key)
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=70)

    def run(
        self,
        pipeline: str | Mapping[str, Any],
        *,
        job: Mapping[str, Any] | None = None,
        files: Mapping[str, str | Path] | None = None,
        version: str | None = None,
        alias: str | None = None,
        priority: Priority | None = None,
        budget_usd: float | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Start a run of a stored pipeline by its name, or of a definition.

        :param files: local files by their names in the job: ``a.mp4`` is ``media://job/a.mp4``
        :param idempotency_key: requests with equal keys start one run; not together with files
        """
        body = _named(pipeline, version=version, alias=alias)
        if files:
            if idempotency_key is not None:
                raise ValueError("idempotency_key and files exclude each other: files make a job")
            body["job_id"] = self._upload(job or {}, files)
        else:
            body["job"] = job or {}
        others = {"priority": priority, "budget_ceiling_usd": budget_usd, "labels": labels}
        body |= {name: value for name, value in others.items() if value is not None}
        data = self._send("POST", "/v1/runs", body, key=idempotency_key or str(uuid.uuid4()))
        return Run(self, data)

    def get(self, run_id: str) -> Run:
        """Read a run with its steps."""
        return Run(self, self._send("GET", f"/v1/runs/{run_id}"))

    def cancel(self, run_id: str, reason: str | None = None) -> Run:
        """Ask a run to end."""
        body = {} if reason is None else {"reason": reason}
        return Run(self, self._send("POST", f"/v1/runs/{run_id}/cancel", body))

    def events(self, run_id: str, after: int = 0) -> Iterator[RunEvent]:
        """Follow the log of a run to its end; a broken connection continues where it broke."""
        headers = {"accept": "text/event-stream"}
        pause = 0.1
        while True:
            try:
                query = {"after": after}
                address = f"/v1/runs/{run_id}/events"
                with self._http.stream("GET", address, params=query, headers=headers) as answer:
                    if not answer.is_success:
                        answer.read()
                        raise _problem(answer)
                    for frame in httpx.EventSource(answer):
                        if not frame.data:
                            continue
                        event: RunEvent = json.loads(frame.data)
                        after, pause = event["seq"], 0.1
                        yield event
                        if event["type"] in _LAST_EVENTS:
                            return
            except httpx.TransportError:
                pause = min(_LONGEST_PAUSE_S, 2 * pause)
            time.sleep(pause)

    def plan(
        self,
        pipeline: str | Mapping[str, Any],
        *,
        job: Mapping[str, Any] | None = None,
        version: str | None = None,
        alias: str | None = None,
        budget_usd: float | None = None,
    ) -> Plan:
        """Compute what a run would do and cost, without a call."""
        body = _named(pipeline, version=version, alias=alias)
        name = body.pop("pipeline", None)
        others = {"job": job, "budget_ceiling_usd": budget_usd}
        body |= {name: value for name, value in others.items() if value is not None}
        address = "/v1/plan" if name is None else f"/v1/pipelines/{name}/plan"
        plan: Plan = self._send("POST", address, body, is_safe=True)
        return plan

    def call(
        self,
        capability: str,
        input: Mapping[str, Any],
        *,
        priority: Priority | None = None,
        budget_usd: float | None = None,
        tags: list[str] | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> ExecAnswer:
        """Call a capability on the best instance, without a pipeline.

        :param timeout: seconds to wait; the call is cancelled if it takes longer. None: no limit.
        """
        others = {"priority": priority, "budget_ceiling_usd": budget_usd, "tags": tags}
        body = {"input": input} | {k: value for k, value in others.items() if value is not None}
        address = f"/v1/capabilities/{capability}/exec"
        limit = httpx.Timeout(timeout, connect=10)
        answer: ExecAnswer = self._send("POST", address, body, key=idempotency_key, timeout=limit)
        return answer

    def costs(self, period: Literal["day", "week", "month", "all"] = "day") -> CostSummary:
        """Read the costs of the project."""
        costs: CostSummary = self._send("GET", f"/v1/costs?period={period}")
        return costs

    def reviews(self, *, state: str = "open", run_id: str | None = None) -> list[Review]:
        """List all reviews in this state, those that are due first at the beginning."""
        query = {"state": state, "order": "due_at", "limit": "200"}
        if run_id is not None:
            query["run_id"] = run_id
        reviews: list[Review] = []
        while True:
            page = self._send("GET", f"/v1/reviews?{httpx.QueryParams(query)}")
            reviews += page["items"]
            if page.get("next_cursor") is None:
                return reviews
            query["cursor"] = page["next_cursor"]

    def decide(self, review: Review | str, action: str, **fields: Any) -> Review:
        """Decide a review as it was read: raise CapstanError if it has changed since.

        :param review: as ``reviews()`` returns it, or its id: then as it is now
        :param fields: those of the action, such as `input` for ``edit``
        """
        if isinstance(review, str):
            review = cast(Review, self._send("GET", f"/v1/reviews/{quote(review, safe='')}"))
        address = f"/v1/reviews/{review['review_id']}/decision"
        headers = {"if-match": f'"{review["version"]}"'}
        body = {"action": action, **fields}
        key = str(uuid.uuid4())
        decided: Review = self._send("POST", address, body, key=key, headers=headers)
        return decided

    def download(self, reference: str, to: str | Path) -> Path:
        """Copy a file of the media store, such as an output, to a new local file."""
        target = Path(to)
        with _transfer():
            self._media.fetch(read_reference(reference), target, Event())
        return target

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Capstan:
        """Close the connections at the end of a `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _upload(self, job: Mapping[str, Any], files: Mapping[str, str | Path]) -> str:
        paths = {name: Path(path) for name, path in files.items()}
        for name, path in paths.items():
            read_reference(f"media://job/{name}")
            if not path.is_file():
                raise FileNotFoundError(path)
        job_id: str = self._send("POST", "/v1/jobs", {"job": job})["job_id"]
        for name, path in paths.items():
            target = read_reference(f"media://{job_id}/{name}")
            with _transfer():
                self._media.store(path, target, guess_type(name), Event())
        return job_id

    def _send(
        self,
        method: str,
        address: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        is_safe: bool = False,
        timeout: httpx.Timeout | None = None,
    ) -> Any:
        """Send a request; repeat it if that is safe: it reads, or carries an Idempotency-Key."""
        own = dict(headers or {}) | ({} if key is None else {"idempotency-key": key})
        limit = timeout or self._http.timeout
        is_safe = is_safe or key is not None or method == "GET"
        for tried in range(1, _TRIES + 1):
            may_repeat = is_safe and tried < _TRIES
            pause = 0.1 * 4**tried
            try:
                answer = self._http.request(method, address, json=body, headers=own, timeout=limit)
            except httpx.TransportError as error:
                if not may_repeat:
                    reason = str(error) or type(error).__name__
                    raise CapstanError(0, "unreachable", reason) from error
            else:
                if answer.is_success:
                    return answer.json()
                if not (may_repeat and answer.status_code in (429, 502, 503)):
                    raise _problem(answer)
                pause = float(answer.headers.get("retry-after", pause))
            time.sleep(min(_LONGEST_RETRY_S, pause))
        raise AssertionError("the last try returns or raises")


def _named(pipeline: str | Mapping[str, Any], **others: str | None) -> Json:
    """The fields that name a stored pipeline or hold a definition."""
    if not isinstance(pipeline, str):
        return {"definition": pipeline}
    return {"pipeline": pipeline} | {k: text for k, text in others.items() if text is not None}


@contextmanager
def _transfer() -> Iterator[None]:
    try:
        yield
    except CallFailure as error:
        raise CapstanError(0, "unreachable", str(error)) from error
    except MediaError as error:
        raise CapstanError(error.status, error.code, str(error)) from error


def _problem(answer: httpx.Response) -> CapstanError:
    try:
        problem = answer.json()
        return CapstanError(answer.status_code, problem["code"], problem["detail"], problem)
    except (ValueError, KeyError, TypeError):
        return CapstanError(answer.status_code, "internal", answer.text[:500])
