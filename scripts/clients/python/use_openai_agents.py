import os

from support import *

os.environ.update(OPENAI_BASE_URL=OPENAI, OPENAI_API_KEY=KEY, OPENAI_AGENTS_DISABLE_TRACING="1")
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel


class Place(BaseModel):
    place: str


def agent(model=MODEL, **more):
    return Agent(name="Forecaster", model=model, **more)


def chat_model():
    return OpenAIChatCompletionsModel(MODEL, AsyncOpenAI(max_retries=0))


async def ask(question, wanted, **more):
    expect((await Runner.run(agent(**more), question)).final_output, wanted)


async def default():
    await ask(HELLO, "Hello, world")


async def tools():
    await ask(WEATHER, RAIN, tools=[function_tool(weather)])


async def streamed_tools():
    result = Runner.run_streamed(agent(tools=[function_tool(weather)]), WEATHER)
    async for _ in result.stream_events():
        pass
    expect(result.final_output, RAIN)


async def structured():
    await ask(PLACE, Place(place="Oslo"), output_type=Place)


async def effort():
    await ask(HELLO, "Hello, world", model_settings=ModelSettings(reasoning=Reasoning(effort="low")))


async def chat():
    await ask(WEATHER, RAIN, model=chat_model(), tools=[function_tool(weather)])


check(
    "openai-agents",
    {
        "default": default,
        "tools": tools,
        "streamed tools": streamed_tools,
        "output type": structured,
        "reasoning effort": effort,
        "chat model with tools": chat,
    },
)
