// Makes the same calls with the official SDKs to a provider and through a relay before it.
//
// Usage: node relayed.mjs PROVIDER RELAY, from the folder whose node_modules has the SDKs. Prints a line of JSON
// for each call: what the SDK made of the answer, and a hash of the bytes of its body, from either.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { default: OpenAI } = require("openai");
const { default: Anthropic } = require("@anthropic-ai/sdk");

const [provider, relay] = process.argv.slice(2);
const apiKey = "sk-of-the-test";
const messages = [{ role: "user", content: "Hi." }];

// A fetch that hashes what comes, before anything decodes it.
function hashing() {
  const seen = { hash: createHash("sha256"), bytes: 0, status: null };
  const hashes = new Promise((resolve) => (seen.ended = resolve));
  seen.whole = hashes;
  seen.fetch = async (...request) => {
    const response = await fetch(...request);
    seen.status = response.status;
    const [ours, theirs] = response.body.tee();
    (async () => {
      for await (const part of ours) {
        seen.hash.update(part);
        seen.bytes += part.length;
      }
      seen.ended();
    })();
    return new Response(theirs, response);
  };
  return seen;
}

const openai = (base, seen) =>
  new OpenAI({ apiKey, baseURL: `${base}/openai/v1`, maxRetries: 0, fetch: seen.fetch });
const anthropic = (base, seen) =>
  new Anthropic({ apiKey, baseURL: `${base}/anthropic`, maxRetries: 0, fetch: seen.fetch });

const calls = {
  chat: [openai, async (c) => (await c.chat.completions.create({ model: "m", messages })).choices[0].message.content],
  chat_stream: [openai, async (c) => {
    let text = "";
    for await (const chunk of await c.chat.completions.create({ model: "m", messages, stream: true }))
      for (const choice of chunk.choices) text += choice.delta.content ?? "";
    return text;
  }],
  respond: [openai, async (c) => (await c.responses.create({ model: "m", input: "Hi." })).output_text],
  respond_stream: [openai, async (c) => {
    let text = "";
    for await (const event of await c.responses.create({ model: "m", input: "Hi.", stream: true }))
      if (event.type === "response.output_text.delta") text += event.delta;
    return text;
  }],
  messages: [anthropic, async (c) =>
    (await c.messages.create({ model: "m", max_tokens: 99, messages })).content.map((block) => block.text).join("")],
  messages_stream: [anthropic, async (c) => {
    const stream = c.messages.stream({ model: "m", max_tokens: 99, messages });
    return await stream.finalText();
  }],
};

for (const [call, [client, make]] of Object.entries(calls)) {
  const sides = [];
  for (const base of [provider, relay]) {
    const seen = hashing();
    const text = await make(client(base, seen));
    await seen.whole;
    sides.push([text, seen.status, seen.bytes, seen.hash.digest("hex")]);
  }
  console.log(JSON.stringify({ call, direct: sides[0], relayed: sides[1] }));
}
