"""Tries a service with OpenAI's own client for Python: pip install openai, start a service, and run

    python client.py http://127.0.0.1:8080/v1 PROMPT KIND...

The KINDs are what the model can do: text, chat and embeddings. The model must know the symbols of PROMPT, which is also
what the user says in a conversation. Prints "ok", or fails at the first answer that is wrong.
"""

import asyncio
import sys

import openai

url, prompt, *kinds = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key="ignored", max_retries=0)
name = client.models.list().data[0].id
assert client.models.retrieve(name).id == name


def fails(kind, param, call, code=None, **fields):
    try:
        call(**fields)
    except kind as e:
        assert (e.param, e.code) == (param, code), (fields, e.body)
        return
    raise AssertionError(f"{fields} has an answer")


fails(openai.NotFoundError, "model", lambda: client.models.retrieve("no"), "model_not_found")


def check(create, text_of, part_of, **fields):
    """Compares answers, whole and in parts, and returns the text."""
    fields = dict(fields, model=name, max_tokens=12, seed=1)
    whole = create(**fields)
    text, reason, usage = text_of(whole), whole.choices[0].finish_reason, whole.usage
    assert usage.completion_tokens <= 12 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage
    assert reason in ("stop", "length") and text, whole
    assert text_of(create(**fields)) == text
    *parts, last = list(create(stream=True, stream_options={"include_usage": True}, **fields))
    assert "".join(part_of(p) or "" for p in parts) == text, (parts, text)
    assert parts[-1].choices[0].finish_reason == reason and parts[0].choices[0].finish_reason is None
    assert last.choices == [] and last.usage == usage, last
    stop = text[2:4]
    stopped = create(**fields, stop=[stop])
    assert text_of(stopped) == text[: text.index(stop)] and stopped.choices[0].finish_reason == "stop", stopped
    for param, wrong in {"n": 2, "temperature": -1, "top_p": 2, "max_tokens": 0, "logit_bias": {"1": 2}, "seed": "x"}.items():
        fails(openai.BadRequestError, param, create, **{**fields, param: wrong})
    fails(openai.BadRequestError, "unknown", create, **fields, extra_body={"unknown": 1})
    fails(openai.NotFoundError, "model", create, "model_not_found", **{**fields, "model": "no"})
    greedy = [text_of(create(**{**fields, "seed": seed, "temperature": 0})) for seed in (1, 2)]
    assert greedy[0] == greedy[1]
    create(**fields, temperature=0.8, top_p=0.9, presence_penalty=0.1, frequency_penalty=0.1, user="me",
           extra_body={"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.1})
    return text


if "text" in kinds:
    complete = client.completions.create
    text = check(complete, lambda a: a.choices[0].text, lambda p: p.choices[0].text, prompt=prompt)
    both = complete(model=name, prompt=[prompt, prompt], max_tokens=12, seed=1)
    assert [(c.index, c.text) for c in both.choices] == [(0, text), (1, text)], both
    for param, wrong in {"echo": True, "best_of": 2, "suffix": "x", "logprobs": 1, "prompt": []}.items():
        fails(openai.BadRequestError, param, complete, **{"model": name, "prompt": prompt, param: wrong})

if "chat" in kinds:
    chat = client.chat.completions.create
    said = [{"role": "user", "content": prompt}]
    text = check(chat, lambda a: a.choices[0].message.content, lambda p: p.choices[0].delta.content, messages=said)
    parts = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    answer = chat(model=name, messages=parts, max_completion_tokens=12, seed=1).choices[0].message
    assert (answer.content, answer.role) == (text, "assistant"), answer
    chat(model=name, messages=[{"role": "system", "content": prompt}, *said, answer, *said], max_tokens=1)
    tool = {"type": "function", "function": {"name": "f"}}
    for param, wrong in {"tools": [tool], "functions": [{"name": "f"}], "logprobs": True, "response_format": {"type": "json_object"}, "messages": []}.items():
        fails(openai.BadRequestError, param, chat, **{"model": name, "messages": said, param: wrong})
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]
    fails(openai.BadRequestError, "messages[0].content[0]", chat, model=name, messages=image)

    async def many():
        each = openai.AsyncOpenAI(base_url=url, api_key="ignored")

        async def one(seed):
            stream = await each.chat.completions.create(model=name, messages=said, max_tokens=12, seed=seed, stream=True)
            return "".join([p.choices[0].delta.content or "" async for p in stream])

        texts = await asyncio.gather(*(one(seed) for seed in range(16)))
        assert texts[1] == text and texts == await asyncio.gather(*(one(seed) for seed in range(16)))

    asyncio.run(many())

if "embeddings" in kinds:
    embed = client.embeddings.create
    texts = [prompt, prompt + " " + prompt, prompt]
    inBase64 = embed(model=name, input=texts)  # the client asks for base64
    floats = embed(model=name, input=texts, encoding_format="float")
    vectors = [e.embedding for e in inBase64.data]
    assert [e.index for e in floats.data] == [0, 1, 2] and floats.usage == inBase64.usage and floats.usage.prompt_tokens > 0
    for got, want in zip(vectors, [e.embedding for e in floats.data], strict=True):
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-7
    one = embed(model=name, input=prompt, dimensions=len(vectors[0])).data[0].embedding
    assert max(abs(a - b) for a, b in zip(one, vectors[0], strict=True)) < 1e-5
    for param, wrong in {"dimensions": 1, "input": [], "encoding_format": "int8"}.items():
        fails(openai.BadRequestError, param, embed, **{"model": name, "input": prompt, param: wrong})

print("ok")
