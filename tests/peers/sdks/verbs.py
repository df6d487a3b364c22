"""Sends each verb with the official SDKs to a recorder, which is told before each what is coming.

Usage: verbs.py BASE_URL. What the SDK makes of the recorder's answers does not matter, only what it sent.
"""

import io
import sys
import urllib.parse
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import types

BASE = sys.argv[1]
KEY = "sk-of-the-test"


def verb(api, name, ids, send):
    query = urllib.parse.urlencode({"api": api, "name": name, "ids": ",".join(ids)})
    urllib.request.urlopen(f"{BASE}/__verb?{query}").read()
    try:
        send()
    except Exception:  # The answers are nobody's: what was sent is recorded already.
        pass


def drain(stream):
    for _ in stream:
        pass


def png():
    return ("a.png", io.BytesIO(b"\x89PNG\r\n\x1a\n"), "image/png")


def text_file():
    return ("a.jsonl", io.BytesIO(b'{"a":1}\n'), "application/jsonl")


def openai_verbs():
    c = openai.OpenAI(api_key=KEY, base_url=f"{BASE}/v1", max_retries=0, timeout=10)
    messages = [{"role": "user", "content": "Hi."}]

    def v(name, send, *ids):
        verb("openai", name, ids, send)

    v("CHAT", lambda: c.chat.completions.create(model="m", messages=messages))
    v("CHAT", lambda: drain(c.chat.completions.create(model="m", messages=messages, stream=True)))
    v("COMPLETE", lambda: c.completions.create(model="m", prompt="Hi."))
    v("EMBED", lambda: c.embeddings.create(model="m", input="Hi.", encoding_format="float"))
    v("MODERATE", lambda: c.moderations.create(input="Hi."))
    v("RESPOND", lambda: c.responses.create(model="m", input="Hi."))
    v("RESPOND", lambda: drain(c.responses.create(model="m", input="Hi.", stream=True)))
    v("RESPONSE_GET", lambda: c.responses.retrieve("resp_1"), "resp_1")
    v("RESPONSE_DELETE", lambda: c.responses.delete("resp_1"), "resp_1")
    v("RESPONSE_CANCEL", lambda: c.responses.cancel("resp_1"), "resp_1")
    v("RESPONSE_INPUT_ITEMS", lambda: c.responses.input_items.list("resp_1"), "resp_1")
    v("RESPONSE_INPUT_TOKENS", lambda: c.responses.input_tokens.count(model="m", input="Hi."))
    v("RESPONSE_COMPACT", lambda: c.responses.compact(model="m", input="Hi."))
    v("CONVERSATION_CREATE", lambda: c.conversations.create(metadata={"a": "b"}))
    v("CONVERSATION_GET", lambda: c.conversations.retrieve("conv_1"), "conv_1")
    v("CONVERSATION_UPDATE", lambda: c.conversations.update("conv_1", metadata={"a": "b"}), "conv_1")
    v("CONVERSATION_DELETE", lambda: c.conversations.delete("conv_1"), "conv_1")
    items = [{"type": "message", "role": "user", "content": "Hi."}]
    v("CONVERSATION_ITEM_CREATE", lambda: c.conversations.items.create("conv_1", items=items), "conv_1")
    v("CONVERSATION_ITEM_LIST", lambda: c.conversations.items.list("conv_1"), "conv_1")
    v("CONVERSATION_ITEM_GET", lambda: c.conversations.items.retrieve("i_1", conversation_id="conv_1"), "conv_1", "i_1")
    v("CONVERSATION_ITEM_DELETE", lambda: c.conversations.items.delete("i_1", conversation_id="conv_1"), "conv_1", "i_1")
    v("IMAGE_GENERATE", lambda: c.images.generate(prompt="A cat", model="m"))
    v("IMAGE_EDIT", lambda: c.images.edit(image=png(), prompt="A hat", model="m"))
    v("IMAGE_VARIATION", lambda: c.images.create_variation(image=png(), model="m"))
    v("SPEECH", lambda: c.audio.speech.create(model="m", voice="alloy", input="Hi."))
    v("TRANSCRIBE", lambda: c.audio.transcriptions.create(model="m", file=("a.wav", b"RIFF", "audio/wav")))
    v("TRANSLATE", lambda: c.audio.translations.create(model="m", file=("a.wav", b"RIFF", "audio/wav")))
    v("VIDEO_CREATE", lambda: c.videos.create(prompt="A cat", model="m"))
    v("VIDEO_GET", lambda: c.videos.retrieve("video_1"), "video_1")
    v("VIDEO_CONTENT", lambda: c.videos.download_content("video_1"), "video_1")
    v("VIDEO_LIST", lambda: c.videos.list())
    v("VIDEO_DELETE", lambda: c.videos.delete("video_1"), "video_1")
    v("VIDEO_REMIX", lambda: c.videos.remix("video_1", prompt="A dog"), "video_1")
    v("FILE_UPLOAD", lambda: c.files.create(file=text_file(), purpose="batch"))
    v("FILE_LIST", lambda: c.files.list())
    v("FILE_GET", lambda: c.files.retrieve("file-1"), "file-1")
    v("FILE_DELETE", lambda: c.files.delete("file-1"), "file-1")
    v("FILE_CONTENT", lambda: c.files.content("file-1"), "file-1")
    v("UPLOAD_CREATE", lambda: c.uploads.create(bytes=8, filename="a", mime_type="text/plain", purpose="batch"))
    v("UPLOAD_PART", lambda: c.uploads.parts.create("upload_1", data=b"abc"), "upload_1")
    v("UPLOAD_COMPLETE", lambda: c.uploads.complete("upload_1", part_ids=["p"]), "upload_1")
    v("UPLOAD_CANCEL", lambda: c.uploads.cancel("upload_1"), "upload_1")
    v("BATCH_CREATE", lambda: c.batches.create(completion_window="24h", endpoint="/v1/responses", input_file_id="file-1"))
    v("BATCH_LIST", lambda: c.batches.list())
    v("BATCH_GET", lambda: c.batches.retrieve("batch_1"), "batch_1")
    v("BATCH_CANCEL", lambda: c.batches.cancel("batch_1"), "batch_1")
    jobs = c.fine_tuning.jobs
    v("FINE_TUNING_CREATE", lambda: jobs.create(model="m", training_file="file-1"))
    v("FINE_TUNING_LIST", lambda: jobs.list())
    v("FINE_TUNING_GET", lambda: jobs.retrieve("ftjob-1"), "ftjob-1")
    v("FINE_TUNING_CANCEL", lambda: jobs.cancel("ftjob-1"), "ftjob-1")
    v("FINE_TUNING_PAUSE", lambda: jobs.pause("ftjob-1"), "ftjob-1")
    v("FINE_TUNING_RESUME", lambda: jobs.resume("ftjob-1"), "ftjob-1")
    v("FINE_TUNING_EVENTS", lambda: jobs.list_events("ftjob-1"), "ftjob-1")
    v("FINE_TUNING_CHECKPOINTS", lambda: jobs.checkpoints.list("ftjob-1"), "ftjob-1")
    stores = c.vector_stores
    v("VECTOR_STORE_CREATE", lambda: stores.create(name="s"))
    v("VECTOR_STORE_LIST", lambda: stores.list())
    v("VECTOR_STORE_GET", lambda: stores.retrieve("vs_1"), "vs_1")
    v("VECTOR_STORE_UPDATE", lambda: stores.update("vs_1", name="t"), "vs_1")
    v("VECTOR_STORE_DELETE", lambda: stores.delete("vs_1"), "vs_1")
    v("VECTOR_STORE_SEARCH", lambda: stores.search("vs_1", query="q"), "vs_1")
    v("VECTOR_STORE_FILE_CREATE", lambda: stores.files.create("vs_1", file_id="file-1"), "vs_1")
    v("VECTOR_STORE_FILE_LIST", lambda: stores.files.list("vs_1"), "vs_1")
    v("VECTOR_STORE_FILE_GET", lambda: stores.files.retrieve("file-1", vector_store_id="vs_1"), "vs_1", "file-1")
    v("VECTOR_STORE_FILE_UPDATE", lambda: stores.files.update("file-1", vector_store_id="vs_1", attributes={"a": "b"}), "vs_1", "file-1")
    v("VECTOR_STORE_FILE_DELETE", lambda: stores.files.delete("file-1", vector_store_id="vs_1"), "vs_1", "file-1")
    v("VECTOR_STORE_FILE_CONTENT", lambda: stores.files.content("file-1", vector_store_id="vs_1"), "vs_1", "file-1")
    v("VECTOR_STORE_BATCH_CREATE", lambda: stores.file_batches.create("vs_1", file_ids=["file-1"]), "vs_1")
    v("VECTOR_STORE_BATCH_GET", lambda: stores.file_batches.retrieve("vsfb_1", vector_store_id="vs_1"), "vs_1", "vsfb_1")
    v("VECTOR_STORE_BATCH_CANCEL", lambda: stores.file_batches.cancel("vsfb_1", vector_store_id="vs_1"), "vs_1", "vsfb_1")
    v("VECTOR_STORE_BATCH_FILES", lambda: stores.file_batches.list_files("vsfb_1", vector_store_id="vs_1"), "vs_1", "vsfb_1")
    v("CONTAINER_CREATE", lambda: c.containers.create(name="c"))
    v("CONTAINER_LIST", lambda: c.containers.list())
    v("CONTAINER_GET", lambda: c.containers.retrieve("cntr_1"), "cntr_1")
    v("CONTAINER_DELETE", lambda: c.containers.delete("cntr_1"), "cntr_1")
    v("CONTAINER_FILE_CREATE", lambda: c.containers.files.create("cntr_1", file=text_file()), "cntr_1")
    v("CONTAINER_FILE_LIST", lambda: c.containers.files.list("cntr_1"), "cntr_1")
    v("CONTAINER_FILE_GET", lambda: c.containers.files.retrieve("cfile_1", container_id="cntr_1"), "cntr_1", "cfile_1")
    v("CONTAINER_FILE_DELETE", lambda: c.containers.files.delete("cfile_1", container_id="cntr_1"), "cntr_1", "cfile_1")
    v("CONTAINER_FILE_CONTENT", lambda: c.containers.files.content.retrieve("cfile_1", container_id="cntr_1"), "cntr_1", "cfile_1")
    v("REALTIME_CLIENT_SECRET", lambda: c.realtime.client_secrets.create(session={"type": "realtime"}))
    v("MODEL_LIST", lambda: c.models.list())
    v("MODEL_GET", lambda: c.models.retrieve("a/b"), "a/b")
    v("MODEL_DELETE", lambda: c.models.delete("ft:m:x"), "ft:m:x")


def anthropic_verbs():
    c = anthropic.Anthropic(api_key=KEY, base_url=BASE, max_retries=0, timeout=10)
    messages = [{"role": "user", "content": "Hi."}]

    def v(name, send, *ids):
        verb("anthropic", name, ids, send)

    v("MESSAGES", lambda: c.messages.create(model="m", max_tokens=9, messages=messages))
    v("MESSAGES", lambda: drain(c.messages.create(model="m", max_tokens=9, messages=messages, stream=True)))
    v("COUNT_TOKENS", lambda: c.messages.count_tokens(model="m", messages=messages))
    request = {"custom_id": "a", "params": {"model": "m", "max_tokens": 9, "messages": messages}}
    v("BATCH_CREATE", lambda: c.messages.batches.create(requests=[request]))
    v("BATCH_LIST", lambda: c.messages.batches.list())
    v("BATCH_GET", lambda: c.messages.batches.retrieve("msgbatch_1"), "msgbatch_1")
    v("BATCH_CANCEL", lambda: c.messages.batches.cancel("msgbatch_1"), "msgbatch_1")
    v("BATCH_DELETE", lambda: c.messages.batches.delete("msgbatch_1"), "msgbatch_1")
    # It asks where the results are before it reads them: the recorder's answer says, at the same path.
    v("BATCH_RESULTS", lambda: drain(c.messages.batches.results("msgbatch_1")), "msgbatch_1")
    v("FILE_UPLOAD", lambda: c.beta.files.upload(file=text_file()))
    v("FILE_LIST", lambda: c.beta.files.list())
    v("FILE_GET", lambda: c.beta.files.retrieve_metadata("file_1"), "file_1")
    v("FILE_DELETE", lambda: c.beta.files.delete("file_1"), "file_1")
    v("FILE_CONTENT", lambda: c.beta.files.download("file_1"), "file_1")
    v("MODEL_LIST", lambda: c.models.list())
    v("MODEL_GET", lambda: c.models.retrieve("claude-x"), "claude-x")


def gemini_verbs():
    c = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE, timeout=10_000))

    def v(name, send, *ids):
        verb("gemini", name, ids, send)

    v("GENERATE", lambda: c.models.generate_content(model="g", contents="Hi."), "g")
    v("GENERATE_STREAM", lambda: drain(c.models.generate_content_stream(model="g", contents="Hi.")), "g")
    v("INTERACT", lambda: c.interactions.create(model="g", input="Hi."))
    v("INTERACTION_GET", lambda: c.interactions.get("int_1"), "int_1")
    v("INTERACTION_CANCEL", lambda: c.interactions.cancel("int_1"), "int_1")
    v("INTERACTION_DELETE", lambda: c.interactions.delete("int_1"), "int_1")
    v("COUNT_TOKENS", lambda: c.models.count_tokens(model="g", contents="Hi."), "g")
    v("EMBED_ALL", lambda: c.models.embed_content(model="g", contents=["Hi."]), "g")
    operation = types.GenerateVideosOperation(name="models/g/operations/op_1")
    v("OPERATION_GET", lambda: c.operations.get(operation), "g", "op_1")
    v("FILE_UPLOAD_START", lambda: c.files.upload(file=io.BytesIO(b"abc"), config={"mime_type": "text/plain"}))
    v("FILE_LIST", lambda: list(c.files.list()))
    v("FILE_GET", lambda: c.files.get(name="files/f1"), "files/f1")
    v("FILE_DELETE", lambda: c.files.delete(name="f1"), "f1")
    v("FILE_CONTENT", lambda: c.files.download(file="files/f1"), "files/f1")
    requests = [{"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}]
    v("BATCH_CREATE", lambda: c.batches.create(model="g", src=requests), "g")
    embed = types.EmbeddingsBatchJobSource(inlined_requests={"contents": [{"parts": [{"text": "Hi."}]}]})
    v("BATCH_EMBED", lambda: c.batches.create_embeddings(model="g", src=embed), "g")
    v("BATCH_LIST", lambda: list(c.batches.list()))
    v("BATCH_GET", lambda: c.batches.get(name="batches/b1"), "batches/b1")
    v("BATCH_CANCEL", lambda: c.batches.cancel(name="batches/b1"), "batches/b1")
    v("BATCH_DELETE", lambda: c.batches.delete(name="batches/b1"), "batches/b1")
    v("CACHE_CREATE", lambda: c.caches.create(model="g", config={"contents": "Hi.", "ttl": "60s"}))
    v("CACHE_LIST", lambda: list(c.caches.list()))
    v("CACHE_GET", lambda: c.caches.get(name="cachedContents/c1"), "cachedContents/c1")
    v("CACHE_UPDATE", lambda: c.caches.update(name="cachedContents/c1", config={"ttl": "60s"}), "cachedContents/c1")
    v("CACHE_DELETE", lambda: c.caches.delete(name="cachedContents/c1"), "cachedContents/c1")
    v("MODEL_LIST", lambda: list(c.models.list()))
    v("MODEL_GET", lambda: c.models.get(model="g"), "g")


openai_verbs()
anthropic_verbs()
gemini_verbs()
