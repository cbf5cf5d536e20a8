from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool
from support import *

model = OpenAIServerModel(MODEL, api_base=OPENAI, api_key=KEY)


def generate(**more):
    content = [{"type": "text", "text": HELLO}]
    expect(model.generate([{"role": "user", "content": content}], **more).content, "Hello, world")


def stream():
    content = [{"type": "text", "text": HELLO}]
    expect_parts(part.content for part in model.generate_stream([{"role": "user", "content": content}]))


def tools(**more):
    agent = ToolCallingAgent(tools=[tool(weather)], model=model, max_steps=3, verbosity_level=0, **more)
    question = "\n".join([call("weather", place="Oslo"), call("final_answer", answer="rain in Oslo")])
    expect(agent.run(question), "rain in Oslo")


def code():
    agent = CodeAgent(tools=[tool(weather)], model=model, max_steps=3, verbosity_level=0)
    first = "<code>\nfound = weather(place='Oslo')\n</code>"
    second = "<code>\nfinal_answer(found + ' in Oslo')\n</code>"
    expect(agent.run("\n".join([say(first), say(second)])), "rain in Oslo")


check(
    "smolagents",
    {
        "generate": generate,
        "stop sequences": lambda: generate(stop_sequences=["Observation:", "Calling tools:"]),
        "stream": stream,
        "ToolCallingAgent": tools,
        "ToolCallingAgent in streams": lambda: tools(stream_outputs=True),
        "CodeAgent": code,
    },
)
