import instructor
import openai
from pydantic import BaseModel, field_validator
from support import *

base = openai.OpenAI(base_url=OPENAI, api_key=KEY, max_retries=0)


class Place(BaseModel):
    place: str

    @field_validator("place")
    @classmethod
    def check(cls, place):
        if place != "Oslo":
            raise ValueError("Oslo is the only place")
        return place


def ask(mode, *answers):
    client = instructor.from_openai(base, mode=mode)
    messages = [{"role": "user", "content": "\n".join(answers)}]
    place = client.chat.completions.create(
        model=MODEL, response_model=Place, max_retries=len(answers) - 1, messages=messages
    )
    expect(place.place, "Oslo")


BERGEN, OSLO = call("Place", place="Bergen"), call("Place", place="Oslo")
Mode = instructor.Mode

check(
    "instructor",
    {
        "tools": lambda: ask(Mode.TOOLS, OSLO),
        "tools, asked again": lambda: ask(Mode.TOOLS, BERGEN, OSLO),
        "strict tools": lambda: ask(Mode.TOOLS_STRICT, OSLO),
        "JSON": lambda: ask(Mode.JSON, PLACE),
        "JSON, asked again": lambda: ask(Mode.JSON, say('{"place": "Bergen"}'), PLACE),
        "JSON schema": lambda: ask(Mode.JSON_SCHEMA, PLACE),
        "JSON in Markdown": lambda: ask(Mode.MD_JSON, say('```json\n{"place": "Oslo"}\n```')),
    },
)
