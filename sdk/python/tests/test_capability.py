from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from capstan import Call, CallFailure, Capability, capability
from pydantic import BaseModel, ConfigDict, Field, computed_field


class Words(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str
    tone: Literal["loud", "soft"] = "loud"
    times: list[int] = []


class Shouted(BaseModel):
    text: str
    language: str = "en"
    secret: str = Field("hidden", exclude=True)

    @computed_field
    def length(self) -> int:
        return len(self.text)


@capability(name="shout", version="1.2.0", tags=["local"], cost=("per_second", 0.0004))
def shout(job: Words, call: Call) -> Shouted:
    """Turns a text into capitals."""
    return Shouted(text=job.text.upper())


def test_the_types_of_the_function_are_the_schemas() -> None:
    spec = shout.spec
    assert (spec["name"], spec["version"]) == ("shout", "1.2.0")
    assert spec["description"] == "Turns a text into capitals."
    assert spec["cost_model"] == {"type": "per_second", "rate_usd": 0.0004}
    assert spec["input"]["required"] == ["text"]
    assert spec["input"]["additionalProperties"] is False
    assert "deterministic" not in spec


def test_an_output_always_holds_its_defaults_so_its_schema_requires_them() -> None:
    assert shout.spec["output"]["required"] == ["text", "language", "length"]
    assert shout.write(Shouted(text="A")) == {"text": "A", "language": "en", "length": 1}


def test_the_function_can_be_called_like_any_other() -> None:
    assert shout(Words(text="a"), Call()).text == "A"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"tone":"shrill"}', "text: Field required; tone: Input should be 'loud' or 'soft'"),
        (b'{"text":"a","times":[1,"x"]}', "times[1]: Input should be a valid integer"),
        (b'{"text":"a","tune":"soft"}', "tune: Extra inputs are not permitted"),
        (b"[]", "the value: Input should be an object"),
        (b'{"a":', "the body is not JSON: "),
    ],
)
def test_a_wrong_input_is_refused_with_the_place_of_the_fault(body: bytes, error: str) -> None:
    with pytest.raises(CallFailure) as caught:
        shout.read(body)
    assert caught.value.status == 422
    assert str(caught.value).startswith(error)


def test_a_refusal_names_five_faults_and_how_many_more_there_are() -> None:
    with pytest.raises(CallFailure, match=r"times\[4\].*; and 2 more$"):
        shout.read(b'{"text":"a","times":["a","b","c","d","e","f","g"]}')


def test_a_result_of_another_type_is_no_answer() -> None:
    with pytest.raises(CallFailure, match="does not match its own schema: text: ") as raised:
        shout.write({"language": "en"})
    assert (raised.value.status, raised.value.code) == (422, "output_invalid")


@dataclass
class Point:
    x: int
    y: int = 0


def test_what_is_loaded_is_declared_and_reported() -> None:
    loaded = ["sdxl"]

    @capability(
        name="image", version="1", affinity="{{ input.x }}", max_resident=2, resident=lambda: loaded
    )
    def image(job: Point) -> Point:
        return job

    assert image.spec["affinity"] == "{{ input.x }}"
    assert image.report() == {"resident": ["sdxl"]}
    loaded.append("flux")
    assert image.report() == {"resident": ["sdxl", "flux"]}
    with pytest.raises(ValueError, match="max_resident is 65; allowed are 1 to 64"):
        capability(name="image", version="1", max_resident=65)(lambda job: job)


def test_dataclasses_are_types_too_and_the_call_may_be_left_out() -> None:
    @capability(name="mirror", version="1", deterministic=True)
    def mirror(job: Point) -> Point:
        return Point(job.y, job.x)

    assert mirror.spec["deterministic"] is True
    assert mirror.spec["description"] == "mirror"
    assert mirror.spec["output"]["required"] == ["x", "y"]
    assert mirror.write(mirror.start(mirror.read(b'{"x":1}'), Call())) == {"x": 0, "y": 1}


def no_type(job) -> Words: ...  # type: ignore[no-untyped-def, empty-body]


def no_return(job: Words): ...  # type: ignore[no-untyped-def]


def of_a_list(job: list[int]) -> Words: ...  # type: ignore[empty-body]


def to_text(job: Words) -> str: ...  # type: ignore[empty-body]


def of_three(job: Words, call: Call, more: int) -> Words: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (no_type, "no type for 'job'"),
        (no_return, "no type for 'return'"),
        (of_a_list, "takes JSON of the type array"),
        (to_text, "returns JSON of the type string"),
        (of_three, "3 parameters"),
    ],
)
def test_a_function_without_usable_types_is_refused_at_once(work: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        capability(name="wrong", version="1")(work)


def test_a_warm_up_that_no_project_pays_for_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"^warm_up is for instances .*; the rate is 0\.5 USD$"):
        Capability(shout.work, name="a", version="1", cost=("per_call", 0.5), warm_up={"input": {}})


@pytest.mark.parametrize("wrong", [{"name": "a b"}, {"max_concurrency": 0}])
def test_a_wrong_declaration_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Capability(shout.work, **{"name": "a", "version": "1", **wrong})
