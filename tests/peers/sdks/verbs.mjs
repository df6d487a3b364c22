// Sends verbs with the official SDKs for Node to a recorder, which is told before each what is coming.
//
// Usage: node verbs.mjs BASE_URL, where the SDKs can be found. What the SDK makes of the recorder's answers
// does not matter, only what it sent.

import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { default: OpenAI, toFile } = require("openai");
const { default: Anthropic } = require("@anthropic-ai/sdk");
const { GoogleGenAI } = require("@google/genai");

const base = process.argv[2];
const apiKey = "sk-of-the-test";
const messages = [{ role: "user", content: "Hi." }];

async function verb(api, name, ids, send) {
  const query = new URLSearchParams({ api, name, ids: ids.join(",") });
  await (await fetch(`${base}/__verb?${query}`)).text();
  try {
    const answer = await send();
    if (answer?.[Symbol.asyncIterator]) for await (const _ of answer);
  } catch {
    // The answers are nobody's: what was sent is recorded already.
  }
}

{
  const c = new OpenAI({ apiKey, baseURL: `${base}/v1`, maxRetries: 0, timeout: 10_000 });
  const v = (name, send, ...ids) => verb("openai", name, ids, send);
  const file = () => toFile(Buffer.from('{"a":1}\n'), "a.jsonl", { type: "application/jsonl" });
  const png = () => toFile(Buffer.from("PNG"), "a.png", { type: "image/png" });
  await v("CHAT", () => c.chat.completions.create({ model: "m", messages }));
  await v("CHAT", () => c.chat.completions.create({ model: "m", messages, stream: true }));
  await v("COMPLETE", () => c.completions.create({ model: "m", prompt: "Hi." }));
  await v("EMBED", () => c.embeddings.create({ model: "m", input: "Hi.", encoding_format: "float" }));
  await v("MODERATE", () => c.moderations.create({ input: "Hi." }));
  await v("RESPOND", () => c.responses.create({ model: "m", input: "Hi." }));
  await v("RESPOND", () => c.responses.create({ model: "m", input: "Hi.", stream: true }));
  await v("RESPONSE_GET", () => c.responses.retrieve("resp_1"), "resp_1");
  await v("RESPONSE_DELETE", () => c.responses.delete("resp_1"), "resp_1");
  await v("CONVERSATION_CREATE", () => c.conversations.create({ metadata: { a: "b" } }));
  await v("IMAGE_GENERATE", () => c.images.generate({ prompt: "A cat", model: "m" }));
  await v("IMAGE_EDIT", async () => c.images.edit({ image: await png(), prompt: "A hat", model: "m" }));
  await v("SPEECH", () => c.audio.speech.create({ model: "m", voice: "alloy", input: "Hi." }));
  await v("VIDEO_CONTENT", () => c.videos.downloadContent("video_1"), "video_1");
  await v("FILE_UPLOAD", async () => c.files.create({ file: await file(), purpose: "batch" }));
  await v("FILE_CONTENT", () => c.files.content("file-1"), "file-1");
  await v("FILE_DELETE", () => c.files.delete("file-1"), "file-1");
  await v("BATCH_CANCEL", () => c.batches.cancel("batch_1"), "batch_1");
  await v("FINE_TUNING_CREATE", () => c.fineTuning.jobs.create({ model: "m", training_file: "file-1" }));
  await v("VECTOR_STORE_SEARCH", () => c.vectorStores.search("vs_1", { query: "q" }), "vs_1");
  await v("CONTAINER_LIST", () => c.containers.list());
  await v("MODEL_GET", () => c.models.retrieve("a/b"), "a/b");
  await v("MODEL_DELETE", () => c.models.delete("ft:m:x"), "ft:m:x");
}

{
  const c = new Anthropic({ apiKey, baseURL: base, maxRetries: 0, timeout: 10_000 });
  const v = (name, send, ...ids) => verb("anthropic", name, ids, send);
  await v("MESSAGES", () => c.messages.create({ model: "m", max_tokens: 9, messages }));
  await v("MESSAGES", () => c.messages.create({ model: "m", max_tokens: 9, messages, stream: true }));
  await v("COUNT_TOKENS", () => c.messages.countTokens({ model: "m", messages }));
  await v("BATCH_LIST", () => c.messages.batches.list());
  await v("BATCH_CANCEL", () => c.messages.batches.cancel("msgbatch_1"), "msgbatch_1");
  await v("FILE_GET", () => c.beta.files.retrieveMetadata("file_1"), "file_1");
  await v("FILE_CONTENT", () => c.beta.files.download("file_1"), "file_1");
  await v("MODEL_GET", () => c.models.retrieve("claude-x"), "claude-x");
}

{
  const c = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base, timeout: 10_000 } });
  const v = (name, send, ...ids) => verb("gemini", name, ids, send);
  await v("GENERATE", () => c.models.generateContent({ model: "g", contents: "Hi." }), "g");
  await v("GENERATE_STREAM", () => c.models.generateContentStream({ model: "g", contents: "Hi." }), "g");
  await v("COUNT_TOKENS", () => c.models.countTokens({ model: "g", contents: "Hi." }), "g");
  await v("EMBED_ALL", () => c.models.embedContent({ model: "g", contents: ["Hi."] }), "g");
  await v("PREDICT", () => c.models.generateImages({ model: "g", prompt: "A cat" }), "g");
  await v("PREDICT_LONG_RUNNING", () => c.models.generateVideos({ model: "g", prompt: "A cat" }), "g");
  await v("FILE_GET", () => c.files.get({ name: "files/f1" }), "files/f1");
  await v("CACHE_UPDATE", () => c.caches.update({ name: "cachedContents/c1", config: { ttl: "60s" } }), "cachedContents/c1");
  await v("MODEL_GET", () => c.models.get({ model: "g" }), "g");
}
