import json
import os
import tempfile

from support import *

folder = tempfile.mkdtemp()
os.environ["LLM_USER_PATH"] = folder
own = {"api_base": OPENAI, "api_key_name": "capstan"}
models = [
    {"model_id": "capstan", "model_name": MODEL, "supports_tools": True, "vision": True, **own},
    {"model_id": "capstan-wrong", "model_name": f"{MODEL}x", **own},
]
# JSON is YAML.
for name, content in {"extra-openai-models.yaml": models, "keys.json": {"capstan": KEY}}.items():
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(content, file)
import llm
import openai

model, wrong = llm.get_model("capstan"), llm.get_model("capstan-wrong")


def tools(**more):
    chain = model.chain(WEATHER, tools=[weather], **more)
    expect_in(RAIN, "".join(response.text() for response in chain.responses()))


def image():
    picture = llm.Attachment(content=base64.b64decode(PNG), type="image/png")
    expect(model.prompt(HELLO, attachments=[picture], stream=False).text(), "I see a picture")


check(
    "llm",
    {
        "chat": lambda: expect(model.prompt(HELLO, stream=False).text(), "Hello, world"),
        "stream": lambda: expect_parts(list(model.prompt(HELLO))),
        "tools": lambda: tools(stream=False),
        "streamed tools": tools,
        "image": image,
        "error": lambda: raises(openai.NotFoundError, lambda: wrong.prompt(HELLO).text(), f"{MODEL}x"),
    },
)
