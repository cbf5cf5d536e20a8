import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from support import *


class Place(BaseModel):
    """A place."""

    place: str


def chat(model=MODEL, **more):
    return ChatOpenAI(model=model, base_url=OPENAI, api_key=KEY, max_retries=0, **more)


def tools(model, gather=lambda model, messages: model.invoke(messages)):
    model = model.bind_tools([TOOL])
    messages = [HumanMessage(WEATHER)]
    asked = gather(model, messages)
    expect(asked.tool_calls[0]["args"], {"place": "Oslo"})
    told = ToolMessage("rain", tool_call_id=asked.tool_calls[0]["id"], name="weather")
    expect(gather(model, [*messages, asked, told]).text, RAIN)


def gather_stream(model, messages):
    first, *others = model.stream(messages)
    for part in others:
        first += part
    return first


def image():
    url = f"data:image/png;base64,{PNG}"
    parts = [{"type": "text", "text": HELLO}, {"type": "image_url", "image_url": {"url": url}}]
    expect(chat().invoke([HumanMessage(parts)]).text, "I see a picture")


def embeddings():
    # Texts, not tokens, which other providers than OpenAI do not know.
    model = OpenAIEmbeddings(model="small", base_url=OPENAI, api_key=KEY, check_embedding_ctx_length=False)
    expect(model.embed_documents(["a", "hello"]), [[1.0, 0.5], [5.0, 0.5]])


def responses():
    model = chat(use_responses_api=True)
    expect(model.invoke(HELLO).text, "Hello, world")
    expect_parts(part.text for part in model.stream(HELLO))


check(
    "langchain-openai",
    {
        "chat": lambda: expect(chat().invoke(HELLO).text, "Hello, world"),
        "stream": lambda: expect_parts(part.text for part in chat().stream(HELLO)),
        "tools": lambda: tools(chat()),
        "streamed tools": lambda: tools(chat(), gather_stream),
        "structured output": lambda: expect(
            chat().with_structured_output(Place).invoke(PLACE), Place(place="Oslo")
        ),
        "reasoning_effort": lambda: expect(
            chat(reasoning_effort="low").invoke(HELLO).text, "Hello, world"
        ),
        "use_responses_api": responses,
        "use_responses_api with tools": lambda: tools(chat(use_responses_api=True), gather_stream),
        "image": image,
        "embeddings": embeddings,
        "error": lambda: raises(
            openai.NotFoundError, lambda: chat(f"{MODEL}x").invoke(HELLO), f"{MODEL}x"
        ),
        "cancel": lambda: raises(openai.APITimeoutError, lambda: chat(timeout=2).invoke(HANG)),
    },
)
