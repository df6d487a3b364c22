//! A body written away as it comes.

use std::io::Write;

use steadfast::call::Item;
use steadfast::outcome::Download;

use crate::stream::Stream;

/// Writes the body of a raw call to `writer` as it comes, and flushes it
///
/// For a request that says [`raw`](steadfast::call::RequestBuilder::raw), as verbs whose answer is a file
/// do. Of an answer in one piece its body is written once it is whole, and of a stream of events
/// nothing. At most one read is held at a time. A writer that is slow slows
/// the server down, and no clock runs meanwhile; one that fails ends the call.
///
/// ```no_run
/// use std::fs::File;
/// use steadfast_blocking::{Client, download, verb::{Service, openai}};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Service::openai(&std::env::var("OPENAI_API_KEY")?);
/// let request = service.request(&openai::FILE_CONTENT, ["file-abc"]).build()?;
/// let mut file = File::create("answer.jsonl")?;
/// let download = download(Client::new().stream(request), &mut file);
/// download.outcome.result?;
/// println!("{} bytes", download.written);
/// # Ok(())
/// # }
/// ```
pub fn download(mut stream: Stream, writer: &mut impl Write) -> Download {
    let mut written = 0;
    while let Some(taken) = stream.next_with(|item| match item {
        Item::Bytes(bytes) => writer.write_all(bytes).map(|()| bytes.len()),
        Item::Delta(_) | Item::Unknown { .. } | Item::Finished(_) => Ok(0),
    }) {
        match taken {
            Ok(count) => written += count as u64,
            Err(error) => stream.consumer_failed(&error.to_string()),
        }
    }
    let mut outcome = stream.outcome();
    if let Ok(completion) = &outcome.result {
        // Empty where it was handed out above.
        let body = completion.body.clone();
        match writer.write_all(&body) {
            Ok(()) => written += body.len() as u64,
            Err(error) => outcome = outcome.consumer_failed(error.to_string()),
        }
    }
    if let Err(error) = writer.flush() {
        outcome = outcome.consumer_failed(error.to_string());
    }
    Download { outcome, written }
}
