import anthropic
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic import BaseModel
from support import *


class Place(BaseModel):
    """A place."""

    place: str


def chat(model=MODEL, **more):
    return ChatAnthropic(model=model, base_url=ANTHROPIC, api_key=KEY, max_retries=0, **more)


def gather_stream(model, messages):
    first, *others = model.stream(messages)
    for part in others:
        first += part
    return first


def tools(model, gather=lambda model, messages: model.invoke(messages)):
    model = model.bind_tools([TOOL])
    messages = [HumanMessage(WEATHER)]
    asked = gather(model, messages)
    expect(asked.tool_calls[0]["args"], {"place": "Oslo"})
    told = ToolMessage("rain", tool_call_id=asked.tool_calls[0]["id"], name="weather")
    expect(gather(model, [*messages, asked, told]).text, RAIN)


thinking = {"type": "enabled", "budget_tokens": 1024}

check(
    "langchain-anthropic",
    {
        "messages": lambda: expect(chat().invoke(HELLO).text, "Hello, world"),
        "stream": lambda: expect_parts(part.text for part in chat().stream(HELLO)),
        "tools": lambda: tools(chat()),
        "streamed tools": lambda: tools(chat(), gather_stream),
        "structured output": lambda: expect(
            chat().with_structured_output(Place).invoke(call("Place", place="Oslo")), Place(place="Oslo")
        ),
        "thinking with tools": lambda: tools(chat(max_tokens=3000, thinking=thinking)),
        "top_k": lambda: expect(chat(top_k=5).invoke(HELLO).text, "Hello, world"),
        "error": lambda: raises(
            anthropic.NotFoundError, lambda: chat(f"{MODEL}x").invoke(HELLO), f"{MODEL}x"
        ),
        "cancel": lambda: raises(anthropic.APITimeoutError, lambda: chat(timeout=2).invoke(HANG)),
    },
)
