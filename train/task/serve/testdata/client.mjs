// Tries a service with OpenAI's own client for JavaScript: npm install openai beside a copy of this file, start a
// service, and run
//
//	node client.mjs http://127.0.0.1:8080/v1 PROMPT KIND...
//
// The arguments are those of client.py.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, prompt, ...kinds] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "ignored", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
assert.equal((await client.models.retrieve(model)).id, model);

const fails = (kind, param, call) =>
  assert.rejects(call, (e) => e instanceof kind && e.param === param && e.type === "invalid_request_error");
await fails(OpenAI.NotFoundError, "model", () => client.models.retrieve("no"));

// check compares answers, whole and in parts.
async function check(create, textOf, partOf, fields) {
  fields = { model, max_tokens: 12, seed: 1, ...fields };
  const whole = await create(fields);
  const text = textOf(whole.choices[0]);
  assert.ok(text && whole.usage.total_tokens === whole.usage.prompt_tokens + whole.usage.completion_tokens);
  let parts = "", last;
  for await (const part of await create({ ...fields, stream: true, stream_options: { include_usage: true } })) {
    parts += part.choices.length ? partOf(part.choices[0]) ?? "" : "";
    last = part;
  }
  assert.equal(parts, text);
  assert.deepEqual(last.usage, whole.usage);
  for (const [param, wrong] of Object.entries({ n: 2, temperature: -1, logit_bias: { 1: 2 }, stop: ["a", "b", "c", "d", "e"] }))
    await fails(OpenAI.BadRequestError, param, () => create({ ...fields, [param]: wrong }));
  const stream = await create({ ...fields, stream: true });
  for await (const _ of stream) break; // disconnects
}

if (kinds.includes("text"))
  await check((f) => client.completions.create(f), (c) => c.text, (c) => c.text, { prompt });
if (kinds.includes("chat")) {
  const messages = [{ role: "user", content: prompt }];
  const chat = (f) => client.chat.completions.create(f);
  await check(chat, (c) => c.message.content, (c) => c.delta.content, { messages });
  await fails(OpenAI.BadRequestError, "tools", () => chat({ model, messages, tools: [{ type: "function", function: { name: "f" } }] }));
  const final = await client.chat.completions.stream({ model, messages, max_tokens: 3 }).finalChatCompletion();
  assert.ok(final.choices[0].message.content);
}
if (kinds.includes("embeddings")) {
  const input = [prompt, prompt + " " + prompt];
  const inBase64 = await client.embeddings.create({ model, input }); // the client asks for base64
  const floats = await client.embeddings.create({ model, input, encoding_format: "float" });
  assert.deepEqual(inBase64.data.map((e) => [...e.embedding].map(Math.fround)), floats.data.map((e) => e.embedding.map(Math.fround)));
  await fails(OpenAI.BadRequestError, "dimensions", () => client.embeddings.create({ model, input, dimensions: 1 }));
}
console.log("ok");
