//! The file format.
//!
//! A scenario is a TOML file, named after its `name`. Times are seconds. A key that is not known
//! is an error that names the nearest one.
//!
//! ```toml
//! name = "stream-mute-after-delta"           # that of the file; lower-case letters, digits, -
//! about = "one delta, then silence"          # what the server does, in a few words
//! tolerance = 0.25                           # how late a bound may be seen on sockets; this is the default
//!
//! [call]                                     # what the caller does
//! shape = "stream"                           # or "unary"
//! dialect = "openai-chat"                    # openai-responses, anthropic, gemini
//! config = { stream_idle_timeout = 0.3 }     # any field of the configuration; "inf" is unbounded
//! body_bytes = 10000000                      # least length of the request body
//! consumer = { pause = 0.6, every = 1 }      # works so long after every so many deltas
//! cancel = { at = 0.2 }                      # or { after_deltas = 1 } or "after-turn"
//! calls = 20                                 # one after the other
//! parallel = true                            # all at once instead
//!
//! [server]
//! listen = "accept"                          # or "refuse", or "full-backlog": no SYN is answered
//! tls = true                                 # from the first step that reads or sends
//! receive_buffer = 4096                      # the kernel's, in bytes
//! send_buffer = 4096
//!
//! [bytes]                                    # fragments, used as $hi; they may use each other
//! hi = """data: {"choices":[]}\n\n"""
//!
//! [[connection]]                             # one for each connection accepted, in order
//! times = 1                                  # so many in a row; the last entry serves all further ones
//! steps = [{ read = "request" }, { chunk = "$hi" }, "await-close"]
//!
//! [[expect]]                                 # one for each call, in order, as above
//! times = 1
//! result = "timeout"                         # completed incomplete blocked timeout status in-band truncated
//!                                            # empty transport protocol proxy cancelled consumer
//! phase = "stream_idle"                      # connect request stream_idle deadline content_idle first_content queue
//! limit = 0.3                                # the error's; its elapsed lies in limit ..= limit + tolerance
//! text = "Hel"                               # of the turn, also of a partial one; or text_bytes
//! attempts = 1
//! billing = "delivered"                      # not_sent maybe_billed
//! # also: status, body, finish_reason, output_tokens, min_elapsed, max_elapsed, max_turn_at
//!
//! [seen]                                     # what the server must have seen by the end
//! connections = 1
//! requests = 1
//! # also: min_blocked, max_received, closed_by_peer
//! ```
//!
//! # Steps
//!
//! | step | what the server does |
//! |---|---|
//! | `{ read = "head" }`, `"request"`, `100` | reads the next head, the whole request, so many bytes |
//! | `{ send = BYTES }` | sends them |
//! | `{ head = ["200 OK", "name: value"] }` | sends a head: the status, then the header lines, nothing added |
//! | `{ answer = { head = [..], body = BYTES } }` | sends a head with `content-length` added, and the body |
//! | `{ chunk = BYTES }`, `"last-chunk"` | sends one chunk of a chunked body, or the last one |
//! | `{ trickle = { data = BYTES, size = 1, every = 0.1 } }` | sends pieces of so many bytes (1 if not stated) with pauses between |
//! | `{ pause = 0.5 }` | neither reads nor sends |
//! | `{ repeat = { times = 10, steps = [..] } }` | does the steps again and again; `times = "forever"` |
//! | `"fin"` | ends the sending side; over TLS without `close_notify`, unless that was sent |
//! | `"close-notify"` | says over TLS that nothing more will come |
//! | `"await-close"` | reads and forgets until the peer has closed |
//! | `"hold"` | holds the connection open and never reads |
//! | `"close"`, `"rst"` | closes the socket, plainly or with a reset |
//!
//! The last step of a connection is `await-close`, `hold`, `close`, `rst` or a repeat without end.
//!
//! # Bytes
//!
//! | form | bytes |
//! |---|---|
//! | `"text $name"` | the text as UTF-8, `$name` replaced by that fragment, `$$` a dollar |
//! | `[BYTES, BYTES]` | one after the other |
//! | `{ hex = "ff 00" }`, `{ base64 = "/wA=" }` | those, which no text can hold |
//! | `{ repeat = BYTES, times = 1000 }` | over and over |
//! | `{ chunk = BYTES }` | as one chunk, to be sent in pieces or cut |
