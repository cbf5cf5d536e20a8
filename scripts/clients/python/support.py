"""What the checks of all clients share: the server, the questions, and a line of JSON for each feature.

A question states the answers of the provider, one a turn: a line `CALL name {…}` asks for a tool, a line `SAY "…"` is a
text in which `{result}` stands for the last result of a tool. `HANG` is no answer.
"""

import asyncio
import base64
import inspect
import json
import os
from importlib.metadata import version

SERVER, KEY, MODEL = os.environ["CAPSTAN_SERVER"], os.environ["CAPSTAN_KEY"], os.environ["CAPSTAN_MODEL"]
OPENAI, ANTHROPIC = f"{SERVER}/openai/v1", f"{SERVER}/anthropic"

PNG = base64.b64encode(base64.b64decode("iVBORw0KGgo=")).decode()


def call(name, **arguments):
    return f"CALL {name} {json.dumps(arguments)}"


def say(text):
    return f"SAY {json.dumps(text)}"


HELLO = say("Hello, world")
PLACE = say('{"place": "Oslo"}')
WEATHER = "\n".join([call("weather", place="Oslo"), say("It is {result} in Oslo")])
RAIN = "It is rain in Oslo"
HANG = "HANG"

PARAMETERS = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather of a place.", "parameters": PARAMETERS},
}


def weather(place: str) -> str:
    """The weather of a place.

    Args:
        place: The name of the place.
    """
    expect(place, "Oslo")
    return "rain"


class Wrong(Exception):
    pass


def expect(seen, wanted):
    if seen != wanted:
        raise Wrong(f"{seen!r} instead of {wanted!r}")


def expect_in(part, whole):
    if part not in whole:
        raise Wrong(f"{whole!r} without {part!r}")


def expect_parts(parts, wanted="Hello, world"):
    """Of a stream: the text has come, and not at once."""
    parts = [part for part in parts if part]
    expect("".join(parts), wanted)
    if len(parts) < 2:
        raise Wrong(f"one part: {parts!r}")


def raises(kinds, work, words=""):
    try:
        work()
    except kinds as error:
        if words not in str(error):
            raise Wrong(f"{error} does not say {words}") from error
        return
    raise Wrong("no error")


def check(package, features):
    client = f"{package} {version(package)} (Python)"
    loop = asyncio.new_event_loop()  # one for all: libraries keep connections that belong to it
    for feature, work in features.items():
        fault = None
        try:
            loop.run_until_complete(work()) if inspect.iscoroutinefunction(work) else work()
        except Exception as error:  # a fault of one feature must not hide the others
            fault = f"{type(error).__name__}: {error}"
        # A library may have left its own line open.
        print("\n" + json.dumps({"client": client, "feature": feature, "fault": fault}), flush=True)
