import os

from support import *

os.environ.update(OPENAI_BASE_URL=OPENAI, OPENAI_API_KEY=KEY)
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Place(BaseModel):
    place: str


def of_openai():
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=OPENAI, api_key=KEY))


def of_anthropic():
    return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=ANTHROPIC, api_key=KEY))


def of_string():
    return f"openai:{MODEL}"


async def two_turns(model):
    expect((await Agent(model, tools=[weather]).run(WEATHER)).output, RAIN)
    async with Agent(model, tools=[weather]).run_stream(WEATHER) as result:
        expect(await result.get_output(), RAIN)


def tools(make):
    async def work():
        await two_turns(make())

    return work


async def stream():
    async with Agent(of_openai()).run_stream(HELLO) as result:
        expect("".join([part async for part in result.stream_text(delta=True)]), "Hello, world")


async def structured():
    agent = Agent(of_openai(), output_type=NativeOutput(Place))
    expect((await agent.run(PLACE)).output, Place(place="Oslo"))


async def effort():
    agent = Agent(of_openai(), model_settings={"openai_reasoning_effort": "low"})
    expect((await agent.run(HELLO)).output, "Hello, world")


async def thinking():
    means = {"type": "enabled", "budget_tokens": 1024}
    agent = Agent(
        of_anthropic(), tools=[weather], model_settings={"anthropic_thinking": means, "max_tokens": 3000}
    )
    expect((await agent.run(WEATHER)).output, RAIN)


check(
    "pydantic-ai-slim",
    {
        "OpenAIChatModel with tools": tools(of_openai),
        "stream": stream,
        "structured output": structured,
        "reasoning effort": effort,
        "AnthropicModel with tools": tools(of_anthropic),
        "AnthropicModel with thinking": thinking,
        "the string openai:… with tools": tools(of_string),
    },
)
