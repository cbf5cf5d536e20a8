"""Uses a server of Capstan through the client libraries of Python, changed in nothing but address and key.

Prints a line of JSON for each client and feature: {"client", "feature", "fault"}; fault is null where it works, and
"not offered" where the client has no such feature.
"""

import base64
import json
import os
import sys
import tempfile

BASE, KEY = os.environ["CAPSTAN_BASE"], os.environ["CAPSTAN_KEY"]
PNG = base64.b64decode("iVBORw0KGgo=")
URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


class Wrong(Exception):
    pass


class NotOffered(Exception):
    pass


def expect(seen, wanted):
    if seen != wanted:
        raise Wrong(f"{seen!r} instead of {wanted!r}")


def check(client, features):
    for feature, work in features.items():
        fault = None
        try:
            work()
        except NotOffered:
            fault = "not offered"
        except Exception as error:  # a fault of one feature must not hide the others
            fault = f"{type(error).__name__}: {error}"
        print(json.dumps({"client": client, "feature": feature, "fault": fault}), flush=True)


def raises(kinds, work, words=""):
    try:
        work()
    except kinds as error:
        if words not in str(error):
            raise Wrong(f"{error} does not say {words}") from error
        return
    raise Wrong("no error")


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def check_openai():
    import openai

    client = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0)

    def create(content="Hi", model="fast", **more):
        messages = [{"role": "user", "content": content}]
        return client.chat.completions.create(model=model, messages=messages, **more)

    def stream():
        parts = [c.choices[0].delta.content or "" for c in create(stream=True) if c.choices]
        expect("".join(parts), "Hello, world")
        expect(sum(part != "" for part in parts) > 1, True)

    def tools():
        asked = create("Weather?", tools=[TOOL]).choices[0].message
        call = asked.tool_calls[0]
        expect(json.loads(call.function.arguments), {"place": "Oslo"})
        told = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
        messages = [{"role": "user", "content": "Weather?"}, asked, told]
        second = client.chat.completions.create(model="fast", messages=messages, tools=[TOOL])
        expect(second.choices[0].message.content, "Rain in Oslo")

    def image():
        parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": URL}}]
        expect(create(parts).choices[0].message.content, "I see a picture")

    def embeddings():
        data = client.embeddings.create(model="small", input=["a", "hello"]).data
        expect([one.embedding for one in data], [[1.0, 0.5], [5.0, 0.5]])

    check(
        f"openai {openai.__version__}",
        {
            "chat": lambda: expect(create().choices[0].message.content, "Hello, world"),
            "stream": stream,
            "tools, two turns": tools,
            "image": image,
            "embeddings": embeddings,
            "models": lambda: expect("model.fast" in [model.id for model in client.models.list()], True),
            "error": lambda: raises(openai.NotFoundError, lambda: create(model="fats"), "model.fast"),
            "cancel": lambda: raises(openai.APITimeoutError, lambda: create("hang", timeout=2)),
        },
    )


def check_langchain():
    from importlib.metadata import version

    import openai
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    def chat(model="fast", **more):
        return ChatOpenAI(model=model, base_url=BASE, api_key=KEY, max_retries=0, **more)

    def stream():
        parts = [part.text for part in chat().stream("Hi")]
        expect("".join(parts), "Hello, world")
        expect(sum(part != "" for part in parts) > 1, True)

    def tools():
        model = chat().bind_tools([TOOL])
        question = HumanMessage("Weather?")
        asked = model.invoke([question])
        expect(asked.tool_calls[0]["args"], {"place": "Oslo"})
        told = ToolMessage("rain", tool_call_id=asked.tool_calls[0]["id"])
        expect(model.invoke([question, asked, told]).text, "Rain in Oslo")

    def image():
        parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": URL}}]
        expect(chat().invoke([HumanMessage(parts)]).text, "I see a picture")

    def embeddings():
        # Texts, not tokens, which other providers than OpenAI do not know.
        model = OpenAIEmbeddings(model="small", base_url=BASE, api_key=KEY, check_embedding_ctx_length=False)
        expect(model.embed_documents(["a", "hello"]), [[1.0, 0.5], [5.0, 0.5]])

    def models():
        raise NotOffered

    check(
        f"langchain-openai {version('langchain-openai')}",
        {
            "chat": lambda: expect(chat().invoke("Hi").text, "Hello, world"),
            "stream": stream,
            "tools, two turns": tools,
            "image": image,
            "embeddings": embeddings,
            "models": models,
            "error": lambda: raises(openai.NotFoundError, lambda: chat("fats").invoke("Hi"), "model.fast"),
            "cancel": lambda: raises(openai.APITimeoutError, lambda: chat(timeout=2).invoke("hang")),
        },
    )


def check_llm():
    from importlib.metadata import version

    folder = tempfile.mkdtemp()
    os.environ["LLM_USER_PATH"] = folder
    own = {"api_base": BASE, "api_key_name": "capstan"}
    models = [
        {"model_id": "capstan", "model_name": "fast", "supports_tools": True, "vision": True, **own},
        {"model_id": "capstan-wrong", "model_name": "fats", **own},
    ]
    # JSON is YAML.
    for name, content in {"extra-openai-models.yaml": models, "keys.json": {"capstan": KEY}}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    import llm
    import openai

    model, wrong = llm.get_model("capstan"), llm.get_model("capstan-wrong")

    def weather(place: str) -> str:
        """The weather of a place."""
        expect(place, "Oslo")
        return "rain"

    def stream():
        parts = list(model.prompt("Hi"))
        expect("".join(parts), "Hello, world")
        expect(sum(part != "" for part in parts) > 1, True)

    def tools():
        text = "".join(response.text() for response in model.chain("Weather?", tools=[weather]).responses())
        expect("Rain in Oslo" in text, True)

    def image():
        picture = llm.Attachment(content=PNG, type="image/png")
        expect(model.prompt("What?", attachments=[picture], stream=False).text(), "I see a picture")

    def not_offered():
        raise NotOffered

    check(
        f"llm {version('llm')}",
        {
            "chat": lambda: expect(model.prompt("Hi", stream=False).text(), "Hello, world"),
            "stream": stream,
            "tools, two turns": tools,
            "image": image,
            "embeddings": not_offered,
            "models": not_offered,
            "error": lambda: raises(openai.NotFoundError, lambda: wrong.prompt("Hi").text(), "model.fast"),
            "cancel": not_offered,
        },
    )


{"openai": check_openai, "langchain-openai": check_langchain, "llm": check_llm}[sys.argv[1]]()
