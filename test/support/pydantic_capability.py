"""A capability whose schemas are those that pydantic writes, and whose inputs pydantic checks once more."""
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

ROUTER, TOKEN = sys.argv[1:3]
STARTED = time.monotonic()
FACTS = {"name": "pydantic.render", "version": "1.0.0"}
PRICE = {"type": "free", "rate_usd": 0}
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", min_length=3, max_length=20)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


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


SPEC = {
    **FACTS,
    "description": "Counts the nodes of a tree.",
    "input": Job.model_json_schema(),
    "output": Result.model_json_schema(mode="serialization"),
    "cost_model": PRICE,
}


def count(node: Node) -> int:
    return 1 + sum(count(child) for child in node.children)


class Capability(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        uptime_ms = int((time.monotonic() - STARTED) * 1000)
        answers = {"/spec": SPEC, "/health": {"status": "ok", **FACTS, "uptime_ms": uptime_ms}}
        if self.path not in answers:
            return self.answer(404, {"ok": False, "error": "no such path"})
        self.answer(200, answers[self.path])

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/exec":
            return self.answer(404, {"ok": False, "error": "no such path"})
        try:
            job = Job.model_validate_json(body)
        except ValidationError as refused:
            first = refused.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return self.answer(422, {"ok": False, "error": f"{place}: {first['msg']}"})
        result = Result(job=job, nodes=count(job.tree))
        self.answer(200, {"ok": True, "output": result.model_dump(mode="json")})

    def log_message(self, *_):
        pass


def send(method, path, body):
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    url = f"{ROUTER}/v1/capabilities{path}"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()


server = ThreadingHTTPServer(("127.0.0.1", 0), Capability)
endpoint = f"http://127.0.0.1:{server.server_address[1]}"


def stop(*_):
    try:
        send("DELETE", f"/{FACTS['name']}", {"endpoint": endpoint})
    finally:
        os._exit(0)


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=server.serve_forever, daemon=True).start()
places = {"endpoint": endpoint, "spec_url": f"{endpoint}/spec", "health_url": f"{endpoint}/health"}
send("POST", "", {**FACTS, "cost_model": PRICE, "tags": ["local"], **places})
print(endpoint, flush=True)
while True:
    signal.pause()
