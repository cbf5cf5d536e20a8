"""A capability whose calls wait while the variable HOLD is set, and that prints what happens."""

import os
import time

from capstan import Call, MediaReference, capability
from pydantic import BaseModel


class Text(BaseModel):
    media_store_path: MediaReference


class Job(BaseModel):
    text: Text
    output_path: MediaReference


class Counted(BaseModel):
    output_path: str
    words: int
    attempt: int


@capability(name="python.count", version="1.0.0", cost=("per_call", 0.25), max_concurrency=2)
def count(job: Job, call: Call) -> Counted:
    """Counts the words of a file, and writes them in capitals."""
    print(f"begun {call.idempotency_key}", flush=True)
    text = call.download(job.text.media_store_path).read_text()
    call.progress(0.5, "read")
    call.log.info(f"{len(text)} characters")
    while "HOLD" in os.environ:
        if call.cancelled.wait(0.02):
            print("cancelled", flush=True)
        call.check()
        time.sleep(0)
    call.upload(text.upper().encode(), job.output_path, "text/plain")
    words = len(text.split())
    return Counted(output_path=job.output_path, words=words, attempt=call.attempt)


count.serve()
