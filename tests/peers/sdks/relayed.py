"""Makes the same calls with the official SDKs to a provider and through a relay before it.

Usage: relayed.py PROVIDER RELAY, both base URLs with a path for each dialect. Prints a line of JSON for each
call: what the SDK made of the answer, and a hash of the bytes of its body, from either.
"""

import hashlib
import json
import sys

import anthropic
import httpx2 as httpx
import openai
from google import genai
from google.genai import types

PROVIDER, RELAY = sys.argv[1:]
KEY = "sk-of-the-test"
MESSAGES = [{"role": "user", "content": "Hi."}]


class Hashing(httpx.HTTPTransport):
    """A transport that hashes what comes, before anything decodes it."""

    def __init__(self):
        super().__init__()
        self.hash, self.bytes, self.status = hashlib.sha256(), 0, None

    def handle_request(self, request):
        response = super().handle_request(request)
        self.status = response.status_code
        response.stream = Hashed(response.stream, self)
        return response


class Hashed(httpx.SyncByteStream):
    def __init__(self, stream, into):
        self.stream, self.into = stream, into

    def __iter__(self):
        for part in self.stream:
            self.into.hash.update(part)
            self.into.bytes += len(part)
            yield part

    def close(self):
        self.stream.close()


def openai_client(base, transport):
    http = httpx.Client(transport=transport)
    return openai.OpenAI(api_key=KEY, base_url=f"{base}/openai/v1", max_retries=0, http_client=http)


def anthropic_client(base, transport):
    http = httpx.Client(transport=transport)
    return anthropic.Anthropic(api_key=KEY, base_url=f"{base}/anthropic", max_retries=0, http_client=http)


def gemini_client(base, transport):
    http = httpx.Client(transport=transport)
    options = types.HttpOptions(base_url=f"{base}/gemini", api_version="v1beta", httpx_client=http)
    return genai.Client(api_key=KEY, http_options=options)


def text_of(parts):
    return "".join(part or "" for part in parts)


def chat(c):
    return c.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content


def chat_stream(c):
    chunks = c.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    return text_of(choice.delta.content for chunk in chunks for choice in chunk.choices)


def respond(c):
    return c.responses.create(model="m", input="Hi.").output_text


def respond_stream(c):
    events = c.responses.create(model="m", input="Hi.", stream=True)
    return text_of(event.delta for event in events if event.type == "response.output_text.delta")


def messages(c):
    return text_of(block.text for block in c.messages.create(model="m", max_tokens=99, messages=MESSAGES).content)


def messages_stream(c):
    with c.messages.stream(model="m", max_tokens=99, messages=MESSAGES) as stream:
        return text_of(stream.text_stream)


def generate(c):
    return c.models.generate_content(model="m", contents="Hi.").text


def generate_stream(c):
    return text_of(chunk.text for chunk in c.models.generate_content_stream(model="m", contents="Hi."))


CALLS = {
    openai_client: [chat, chat_stream, respond, respond_stream],
    anthropic_client: [messages, messages_stream],
    gemini_client: [generate, generate_stream],
}

for client, calls in CALLS.items():
    for call in calls:
        sides = []
        for base in (PROVIDER, RELAY):
            transport = Hashing()
            text = call(client(base, transport))
            sides.append([text, transport.status, transport.bytes, transport.hash.hexdigest()])
        print(json.dumps({"call": call.__name__, "direct": sides[0], "relayed": sides[1]}))
