"""`@capability` turns a function into a capability: its types are the schemas of the capability."""

from __future__ import annotations

import inspect
import logging
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from .errors import CallFailure

logger = logging.getLogger("capstan")

Cost = tuple[Literal["per_second", "per_call"], float]
Given = ParamSpec("Given")
Result = TypeVar("Result")

_FINDINGS = 5


class _Schema(GenerateJsonSchema):
    """An output always holds its fields with defaults, so its schema requires them."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not field.get("serialization_exclude")
        return super().field_is_required(field, total)


class Capability(Generic[Given, Result]):
    """A function that Capstan calls by HTTP. It can still be called like any function."""

    def __init__(
        self,
        work: Callable[Given, Result],
        *,
        name: str,
        version: str,
        description: str | None = None,
        tags: Sequence[str] = (),
        cost: Literal["free"] | Cost = "free",
        max_concurrency: int = 1,
        timeout: float | None = None,
        setup: Callable[[], Any] | None = None,
        deterministic: bool = False,
        settle: Literal["computed", "reported"] = "computed",
        warm_up: Mapping[str, Any] | None = None,
        answers_later: Literal["held", "freed"] | None = None,
        affinity: str | None = None,
        max_resident: int | None = None,
        resident: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """See `capability`."""
        if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name) is None:
            raise ValueError(f"the name {name!r} has other characters than letters, digits, . _ -")
        if not 1 <= max_concurrency <= 10_000:
            raise ValueError(f"max_concurrency is {max_concurrency}; allowed are 1 to 10,000")
        if max_resident is not None and not 1 <= max_resident <= 64:
            raise ValueError(f"max_resident is {max_resident}; allowed are 1 to 64")
        self.work = work
        self.name = name
        self.version = version
        self.tags = list(tags)
        self.max_concurrency = max_concurrency
        self.timeout = timeout
        self.setup = setup
        self.settle = settle
        self.warm_up = warm_up
        self.max_resident = max_resident
        self._resident = resident
        self._resident_failed = False
        self.is_async = inspect.iscoroutinefunction(work)
        kind, rate = ("free", 0.0) if cost == "free" else cost
        if warm_up is not None and rate != 0:
            raise ValueError(
                "warm_up is for instances whose rate is 0, because no project pays for that call; "
                f"the rate is {rate:g} USD"
            )
        self.cost_model = {"type": kind, "rate_usd": rate}
        self._takes_call, given, returned = _read_types(work)
        self._input: TypeAdapter[Any] = TypeAdapter(given)
        self._output: TypeAdapter[Any] = TypeAdapter(returned)
        self.spec: dict[str, Any] = {
            "name": name,
            "version": version,
            "description": description or inspect.getdoc(work) or name,
            "input": _object_schema(self._input, "validation", work),
            "output": _object_schema(self._output, "serialization", work),
            "cost_model": self.cost_model,
        }
        if deterministic:
            self.spec["deterministic"] = True
        if answers_later is not None:
            self.spec["async"] = {"slot": answers_later}
        if affinity is not None:
            self.spec["affinity"] = affinity

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Result:
        """Call the function itself, for example in a unit test."""
        return self.work(*given, **named)

    def report(self) -> dict[str, Any]:
        """Return the keys that are loaded now, as reports have them; nothing if none are declared.

        Never raises, since work that is done is worth more than a report: a fault is logged once.
        """
        if self._resident is None:
            return {}
        try:
            found = self._resident()
            keys = list(found)
            if isinstance(found, str) or not all(isinstance(key, str) for key in keys):
                kind = type(found).__name__
                raise TypeError(f"it returned {kind}, and a list of texts is needed")
            return {"resident": keys}
        except Exception as error:
            if not self._resident_failed:
                logger.warning("resident failed, and is left out: %s", error)
            self._resident_failed = True
            return {}

    def read(self, body: bytes) -> Any:
        """Parse an input; raise CallFailure 422 that names the wrong fields."""
        try:
            return self._input.validate_json(body)
        except ValidationError as error:
            raise CallFailure(422, _describe(error)) from error

    def start(self, job: Any, call: Any) -> Any:
        """Start the function: the result, or a coroutine."""
        work: Callable[..., Any] = self.work
        return work(job, call) if self._takes_call else work(job)

    def write(self, result: Any) -> Any:
        """Return an output as JSON values; raise CallFailure 422 if it has another type."""
        try:
            checked = self._output.validate_python(result)
        except ValidationError as error:
            reason = f"the output does not match its own schema: {_describe(error)}"
            raise CallFailure(422, reason, code="output_invalid") from error
        return self._output.dump_python(checked, mode="json", by_alias=True)

    def serve(self) -> typing.NoReturn:
        """Serve until SIGTERM or SIGINT, then end the process.

        It reads ROUTER_URL, ROUTER_TOKEN, HOST, PORT, ADVERTISE_URL, SHARED_WITH and MEDIA_URL from
        the environment; without ROUTER_URL it serves only.
        """
        from .lifecycle import serve

        serve(self)


def capability(
    *,
    name: str,
    version: str,
    description: str | None = None,
    tags: Sequence[str] = (),
    cost: Literal["free"] | Cost = "free",
    max_concurrency: int = 1,
    timeout: float | None = None,
    setup: Callable[[], Any] | None = None,
    deterministic: bool = False,
    settle: Literal["computed", "reported"] = "computed",
    warm_up: Mapping[str, Any] | None = None,
    answers_later: Literal["held", "freed"] | None = None,
    affinity: str | None = None,
    max_resident: int | None = None,
    resident: Callable[[], Sequence[str]] | None = None,
) -> Callable[[Callable[Given, Result]], Capability[Given, Result]]:
    """Make a capability of a function `(job: In, call: Call) -> Out`; `call` may be left out.

    `In` and `Out` are pydantic models, dataclasses or typed dicts. A plain function runs in a
    thread, an async one in the event loop.

    :param description: for people who look for a capability; default: the function's docstring
    :param tags: labels that steps can ask for, such as ``local`` or ``gpu``
    :param cost: ``free``, or the unit and its price in USD, such as ``("per_second", 0.0004)``
    :param max_concurrency: calls that run in parallel; further calls wait inside the instance
    :param timeout: seconds until a call is cancelled and answered 504
    :param setup: runs once, before the registration; `call.state` is its result
    :param deterministic: equal inputs have equivalent results, so steps may cache them
    :param settle: ``reported``: a success costs the `cost_usd` of its output
    :param answers_later: calls may be answered later, by `later` and `send_result`; whether a call
        keeps its slot until then (``held``) or frees it (``freed``)
    :param affinity: the key of what a call needs loaded, such as ``{{ input.model }}``: calls with
        the same key go to an instance that has it loaded, if that is sooner
    :param max_resident: keys that the instance holds loaded at once; default: as many as it reports
    :param resident: returns the keys that are loaded now; default: the router infers them
    :param warm_up: ``{"input": …, "timeout_s": 60}``: a call that the router makes before others
    """

    def decorate(work: Callable[Given, Result]) -> Capability[Given, Result]:
        return Capability(
            work,
            name=name,
            version=version,
            description=description,
            tags=tags,
            cost=cost,
            max_concurrency=max_concurrency,
            timeout=timeout,
            setup=setup,
            deterministic=deterministic,
            settle=settle,
            warm_up=warm_up,
            answers_later=answers_later,
            affinity=affinity,
            max_resident=max_resident,
            resident=resident,
        )

    return decorate


def _read_types(work: Callable[..., Any]) -> tuple[bool, Any, Any]:
    """Whether the function takes a call, and the types of its input and output."""
    parameters = list(inspect.signature(work).parameters)
    hints = typing.get_type_hints(work, include_extras=True)
    named = getattr(work, "__qualname__", repr(work))
    if len(parameters) not in (1, 2):
        raise TypeError(f"{named} has {len(parameters)} parameters; allowed are (job, call)")
    for part in (parameters[0], "return"):
        if part not in hints:
            raise TypeError(f"{named} has no type for {part!r}, which becomes a schema")
    return len(parameters) == 2, hints[parameters[0]], hints["return"]


def _object_schema(
    adapter: TypeAdapter[Any],
    mode: Literal["validation", "serialization"],
    work: Callable[..., Any],
) -> dict[str, Any]:
    schema = adapter.json_schema(mode=mode, schema_generator=_Schema)
    if schema.get("type", "object") != "object":
        side = "takes" if mode == "validation" else "returns"
        named = getattr(work, "__qualname__", repr(work))
        raise TypeError(f"{named} {side} JSON of the type {schema['type']}; use a pydantic model")
    return schema


def _describe(error: ValidationError) -> str:
    findings = error.errors(include_url=False)
    if findings[0]["type"] == "json_invalid":
        return f"the body is not JSON: {findings[0]['msg']}"
    texts = [f"{_place(found['loc'])}: {found['msg']}" for found in findings[:_FINDINGS]]
    more = len(findings) - len(texts)
    return "; ".join(texts + ([f"and {more} more"] if more > 0 else []))


def _place(location: tuple[int | str, ...]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".") or "the value"
