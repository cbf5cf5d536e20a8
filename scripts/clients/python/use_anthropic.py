import anthropic
from anthropic import beta_tool
from pydantic import BaseModel
from support import *

client = anthropic.Anthropic(base_url=ANTHROPIC, api_key=KEY, max_retries=0)
tool = {"name": "weather", "description": "The weather of a place.", "input_schema": PARAMETERS}


class Place(BaseModel):
    place: str


def asked(content, **more):
    return {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": content}], **more}


def create(content=HELLO, **more):
    return client.messages.create(**asked(content, **more))


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def second(first, content):
    [told] = [block for block in first.content if block.type == "tool_use"]
    expect(told.input, {"place": "Oslo"})
    result = {"type": "tool_result", "tool_use_id": told.id, "content": "rain"}
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]


def stream():
    with client.messages.stream(**asked(HELLO)) as events:
        expect_parts(list(events.text_stream))
        expect(events.get_final_message().usage.output_tokens, 5)


def tools():
    first = create(WEATHER, tools=[tool])
    expect(text_of(create(tools=[tool], messages=second(first, WEATHER))), RAIN)


def streamed_tools():
    def ask(**more):
        with client.messages.stream(**asked(WEATHER, tools=[tool], **more)) as events:
            return events.get_final_message()

    expect(text_of(ask(messages=second(ask(), WEATHER))), RAIN)


def beta():
    answer = client.beta.messages.create(**asked(HELLO), betas=["context-management-2025-06-27"])
    expect(text_of(answer), "Hello, world")


def tool_runner():
    runner = client.beta.messages.tool_runner(**asked(WEATHER), tools=[beta_tool(weather)])
    expect(text_of(runner.until_done()), RAIN)


def thinking():
    means = {"type": "enabled", "budget_tokens": 1024}
    more = {"max_tokens": 2000, "thinking": means, "tools": [tool]}
    first = create(WEATHER, **more)
    expect(text_of(create(messages=second(first, WEATHER), **more)), RAIN)


def image():
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    parts = [{"type": "text", "text": HELLO}, {"type": "image", "source": source}]
    expect(text_of(create(parts)), "I see a picture")


def count_tokens():
    messages = [{"role": "user", "content": HELLO}]
    expect(client.messages.count_tokens(model=MODEL, messages=messages).input_tokens > 0, True)


check(
    "anthropic",
    {
        "messages": lambda: expect(text_of(create()), "Hello, world"),
        "stream": stream,
        "tools": tools,
        "streamed tools": streamed_tools,
        "parse": lambda: expect(
            client.messages.parse(**asked(PLACE), output_format=Place).parsed_output, Place(place="Oslo")
        ),
        "beta": beta,
        "tool_runner": tool_runner,
        "thinking": thinking,
        "image": image,
        "count_tokens": count_tokens,
        "models": lambda: expect_in(MODEL, [model.id for model in client.models.list()]),
        "error": lambda: raises(anthropic.NotFoundError, lambda: create(model=f"{MODEL}x"), f"{MODEL}x"),
        "cancel": lambda: raises(anthropic.APITimeoutError, lambda: create(HANG, timeout=2)),
    },
)
