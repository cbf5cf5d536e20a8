"""Drives a Capstan by every method of the client, and prints what it saw as JSON."""

import json
import sys
import tempfile
import time
from pathlib import Path

from capstan import Capstan, CapstanError, RunFailed

capability, folder = sys.argv[1], Path(tempfile.mkdtemp())
held = {
    "id": "count",
    "capability": capability,
    "input": {
        "text": {"media_store_path": "{{ job.text }}"},
        "output_path": "media://{{ run.job_id }}/loud.txt",
    },
}
pipeline = {"pipeline": "python-driven", "version": "1", "steps": [held]}
asking = {"id": "ask", "review": {"title": "May it go on?"}}
seen = {}

with Capstan() as capstan:
    before = capstan.costs()["today_spend_usd"]
    (folder / "poem.txt").write_text("the sea the sun")
    files = {"poem.txt": folder / "poem.txt"}
    seen["plan"] = capstan.plan(pipeline, job={"text": "media://job/poem.txt"})["cost_usd"]
    run = capstan.run(pipeline, job={"text": "media://job/poem.txt"}, files=files)
    seen["events"] = [event["type"] for event in run.events()]
    output = run.result()["count"]
    seen["run"] = [run.state, run.cost_usd, output["words"]]
    seen["file"] = capstan.download(output["output_path"], folder / "loud.txt").read_text()
    answer = capstan.call(
        capability,
        {"text": {"media_store_path": f"media://{run.data['job_id']}/poem.txt"}}
        | {"output_path": f"media://{run.data['job_id']}/again.txt"},
    )
    seen["call"] = answer["output"]["words"]
    while (spent := capstan.costs()["today_spend_usd"] - before) < 0.5:
        time.sleep(0.05)  # a call is settled soon after its answer
    seen["costs"] = spent

    waiting = capstan.run({"pipeline": "python-asks", "version": "1", "steps": [asking]})
    for event in waiting.events():
        if event["type"] == "step.waiting":
            break
    (review,) = capstan.reviews(run_id=waiting.run_id)
    capstan.decide(review, "output", output={"yes": True})
    seen["review"] = [review["kind"], waiting.wait().state]

    stopped = capstan.run({"pipeline": "python-waits", "version": "1", "steps": [asking]})
    try:
        stopped.cancel("no longer needed").result()
    except RunFailed as error:
        seen["cancelled"] = [error.code, capstan.get(stopped.run_id).state]
    try:
        capstan.get("run_unknown")
    except CapstanError as error:
        seen["error"] = [error.status, error.code]

print(json.dumps(seen))
