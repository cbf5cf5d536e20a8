import os

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", HF_HUB_OFFLINE="1")
import dspy
from support import *


def model(**more):
    return dspy.LM(f"openai/{MODEL}", api_base=OPENAI, api_key=KEY, cache=False, num_retries=0, **more)


def field(name, value):
    return f"[[ ## {name} ## ]]\n{value}\n\n"


def predict():
    answer = say(field("answer", "rain") + "[[ ## completed ## ]]")
    with dspy.context(lm=model()):
        expect(dspy.Predict("question -> answer")(question=answer).answer, "rain")


def tools():
    question = {"role": "user", "content": WEATHER}
    [asked] = model()(messages=[question], tools=[TOOL])
    [told] = asked["tool_calls"]
    calls = [{"id": told.id, "type": "function", "function": dict(told.function)}]
    result = {"role": "tool", "tool_call_id": told.id, "content": "rain"}
    turns = [question, {"role": "assistant", "content": None, "tool_calls": calls}, result]
    [answer] = model()(messages=turns, tools=[TOOL])
    expect(answer if isinstance(answer, str) else answer["text"], RAIN)


check(
    "dspy",
    {
        "LM": lambda: expect(model()(HELLO)[0], "Hello, world"),
        "Predict": predict,
        "tools": tools,
        "responses": lambda: expect_in("Hello, world", str(model(model_type="responses")(HELLO)[0])),
        "reasoning_effort": lambda: expect_in("Hello, world", str(model(reasoning_effort="low")(HELLO)[0])),
    },
)
