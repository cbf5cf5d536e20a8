"""A capability with the types that pydantic knows: sets, unions, models that contain themselves."""

from typing import Annotated, Literal

from capstan import capability
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", min_length=3, max_length=20)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Crop(Strict):
    kind: Literal["crop"]
    width: int = Field(gt=0)
    height: int = Field(gt=0)


class Scale(Strict):
    kind: Literal["scale"]
    percent: float = Field(gt=0, le=400)


class Node(Strict):
    name: Name
    weight: float = 1
    children: list["Node"] = []

    @field_validator("children")
    @classmethod
    def differ(cls, children: list["Node"]) -> list["Node"]:
        if len({child.name for child in children}) < len(children):
            raise ValueError("two children have the same name")
        return children


class Job(Strict):
    title: Name
    quality: Literal["draft", "standard", "final"] = "standard"
    tags: set[str] = Field(min_length=1)
    tree: Node
    frame: Annotated[Crop | Scale, Field(discriminator="kind")] | None = None
    preview: Crop | Scale | None = None


class Result(Strict):
    job: Job
    nodes: int


def count(node: Node) -> int:
    return 1 + sum(count(child) for child in node.children)


@capability(name="pydantic.render", version="1.0.0", tags=["local"])
def render(job: Job) -> Result:
    """Counts the nodes of a tree."""
    return Result(job=job, nodes=count(job.tree))


render.serve()
