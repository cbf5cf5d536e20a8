import json

import openai
from pydantic import BaseModel
from support import *

client = openai.OpenAI(base_url=OPENAI, api_key=KEY, max_retries=0)
tool = {"type": "function", "name": "weather", "description": "The weather.", "parameters": PARAMETERS}


class Place(BaseModel):
    place: str


def user(content):
    return {"role": "user", "content": content}


def create(content=HELLO, model=MODEL, **more):
    return client.chat.completions.create(model=model, messages=[user(content)], **more)


def run(asked):
    [told] = asked.tool_calls
    expect(json.loads(told.function.arguments), {"place": "Oslo"})
    return {"role": "tool", "tool_call_id": told.id, "content": "rain"}


def tools():
    asked = create(WEATHER, tools=[TOOL]).choices[0].message
    messages = [user(WEATHER), asked, run(asked)]
    second = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
    expect(second.choices[0].message.content, RAIN)


def streamed_tools():
    def ask(messages):
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=[TOOL]) as stream:
            return stream.get_final_completion().choices[0].message

    asked = ask([user(WEATHER)])
    expect(ask([user(WEATHER), asked.model_dump(exclude_none=True), run(asked)]).content, RAIN)


def parse():
    completion = client.chat.completions.parse(model=MODEL, messages=[user(PLACE)], response_format=Place)
    expect(completion.choices[0].message.parsed, Place(place="Oslo"))


def responses():
    expect(client.responses.create(model=MODEL, input=HELLO).output_text, "Hello, world")
    parsed = client.responses.parse(model=MODEL, input=PLACE, text_format=Place)
    expect(parsed.output_parsed, Place(place="Oslo"))


def result_of(response):
    [told] = [item for item in response.output if item.type == "function_call"]
    expect(json.loads(told.arguments), {"place": "Oslo"})
    return {"type": "function_call_output", "call_id": told.call_id, "output": "rain"}


def responses_tools():
    first = client.responses.create(model=MODEL, input=WEATHER, tools=[tool])
    kept = client.responses.create(
        model=MODEL, input=[result_of(first)], previous_response_id=first.id, tools=[tool]
    )
    expect(kept.output_text, RAIN)
    whole = [user(WEATHER), *first.output, result_of(first)]
    expect(client.responses.create(model=MODEL, input=whole, tools=[tool], store=False).output_text, RAIN)


def responses_stream():
    def ask(asked):
        with client.responses.stream(model=MODEL, input=asked, tools=[tool]) as stream:
            parts = [event.delta for event in stream if event.type == "response.output_text.delta"]
            return parts, stream.get_final_response()

    expect_parts(ask(HELLO)[0])
    _, first = ask(WEATHER)
    expect_parts(ask([user(WEATHER), *first.output, result_of(first)])[0], RAIN)


def image():
    url = f"data:image/png;base64,{PNG}"
    parts = [{"type": "text", "text": HELLO}, {"type": "image_url", "image_url": {"url": url}}]
    expect(create(parts).choices[0].message.content, "I see a picture")


def embeddings():
    data = client.embeddings.create(model="small", input=["a", "hello"]).data
    expect([one.embedding for one in data], [[1.0, 0.5], [5.0, 0.5]])


check(
    "openai",
    {
        "chat": lambda: expect(create().choices[0].message.content, "Hello, world"),
        "stream": lambda: expect_parts(
            chunk.choices[0].delta.content for chunk in create(stream=True) if chunk.choices
        ),
        "tools": tools,
        "streamed tools": streamed_tools,
        "parse": parse,
        "responses": responses,
        "responses with tools": responses_tools,
        "responses in streams": responses_stream,
        "image": image,
        "embeddings": embeddings,
        "models": lambda: expect_in(MODEL, [model.id for model in client.models.list()]),
        "error": lambda: raises(
            openai.NotFoundError, lambda: create(model=f"{MODEL}x"), f"{MODEL}x"
        ),
        "cancel": lambda: raises(openai.APITimeoutError, lambda: create(HANG, timeout=2)),
    },
)
