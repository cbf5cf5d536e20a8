import json
import os

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", HF_HUB_OFFLINE="1")
import litellm
from support import *

litellm.suppress_debug_info = True
litellm.telemetry = False

openai = {"model": f"openai/{MODEL}", "api_base": OPENAI, "api_key": KEY, "num_retries": 0, "max_retries": 0}
anthropic = {**openai, "model": f"anthropic/{MODEL}", "api_base": ANTHROPIC, "max_tokens": 3000}


def ask(content=HELLO, by=openai, **more):
    return litellm.completion(**{**by, "messages": [{"role": "user", "content": content}], **more})


def text(**more):
    expect(ask(**more).choices[0].message.content, "Hello, world")


def two_turns(by, gather=lambda answer: answer, **more):
    asked = gather(ask(WEATHER, by, tools=[TOOL], **more)).choices[0].message
    [told] = asked.tool_calls
    expect(json.loads(told.function.arguments), {"place": "Oslo"})
    result = {"role": "tool", "tool_call_id": told.id, "name": "weather", "content": "rain"}
    messages = [{"role": "user", "content": WEATHER}, asked.model_dump(), result]
    second = gather(ask(by=by, messages=messages, tools=[TOOL], **more))
    expect(second.choices[0].message.content, RAIN)


def streamed_tools(by):
    two_turns(by, lambda chunks: litellm.stream_chunk_builder(list(chunks)), stream=True)


def cache_control():
    system = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    text(messages=[{"role": "system", "content": [system]}, {"role": "user", "content": HELLO}])


def structured():
    schema = {**PARAMETERS, "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": schema}}
    answer = ask(PLACE, response_format=form).choices[0].message.content
    expect(json.loads(answer), {"place": "Oslo"})


def responses():
    answer = litellm.responses(input=HELLO, **openai)
    expect(answer.output_text, "Hello, world")


def embeddings():
    data = litellm.embedding(**{**openai, "model": "openai/small"}, input=["a", "hello"]).data
    expect([one["embedding"] for one in data], [[1.0, 0.5], [5.0, 0.5]])


check(
    "litellm",
    {
        "chat": text,
        "stream": lambda: expect_parts(
            chunk.choices[0].delta.content for chunk in ask(stream=True) if chunk.choices
        ),
        "tools": lambda: two_turns(openai),
        "streamed tools": lambda: streamed_tools(openai),
        "reasoning_effort": lambda: text(
            reasoning_effort="low", allowed_openai_params=["reasoning_effort"]
        ),
        "cache_control": cache_control,
        "structured output": structured,
        "responses": responses,
        "embeddings": embeddings,
        "messages with tools": lambda: two_turns(anthropic),
        "messages, streamed tools": lambda: streamed_tools(anthropic),
        "error": lambda: raises(
            litellm.NotFoundError, lambda: ask(by={**openai, "model": f"openai/{MODEL}x"}), f"{MODEL}x"
        ),
    },
)
