from capstan import Call, capability
from pydantic import BaseModel


class Words(BaseModel):
    text: str


@capability(name="shout", version="1.0.0", tags=["local"])
def shout(job: Words, call: Call) -> Words:
    """Turns a text into capitals."""
    return Words(text=job.text.upper())


shout.serve()
