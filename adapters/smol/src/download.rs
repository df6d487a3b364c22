//! A body written away as it comes.

use smol::io::{AsyncWrite, AsyncWriteExt};

use steadfast::outcome::Download;
use steadfast_driver::Piece;

use crate::CallStream;

/// Writes the body of a raw call to `writer` as it comes, and flushes it
///
/// For a request that says [`raw`](steadfast::call::RequestBuilder::raw), as verbs whose answer is a file
/// do. Of an answer in one piece its body is written once it is whole, and of a stream of events
/// nothing. At most one read is held at a time. A writer that is slow slows
/// the server down, and no clock runs meanwhile; one that fails ends the call.
///
/// ```no_run
/// use smol::fs::File;
/// use steadfast_smol::{Client, download, verb::{Service, openai}};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Service::openai(&std::env::var("OPENAI_API_KEY")?);
/// let request = service.request(&openai::FILE_CONTENT, ["file-abc"]).build()?;
/// let mut file = File::create("answer.jsonl").await?;
/// let download = download(Client::new().stream(request), &mut file).await;
/// download.outcome.result?;
/// println!("{} bytes", download.written);
/// # Ok(())
/// # }
/// ```
pub async fn download(mut stream: CallStream, writer: &mut (impl AsyncWrite + Unpin)) -> Download {
    let mut written = 0;
    while let Some(piece) = stream.next().await {
        let Piece::Bytes(bytes) = piece else { continue };
        match writer.write_all(&bytes).await {
            Ok(()) => written += bytes.len() as u64,
            Err(error) => stream.consumer_failed(&error.to_string()),
        }
    }
    let mut outcome = stream.outcome().await;
    if let Ok(completion) = &outcome.result {
        // Empty where it was handed out above.
        let body = completion.body.clone();
        match writer.write_all(&body).await {
            Ok(()) => written += body.len() as u64,
            Err(error) => outcome = outcome.consumer_failed(error.to_string()),
        }
    }
    if let Err(error) = writer.flush().await {
        outcome = outcome.consumer_failed(error.to_string());
    }
    Download { outcome, written }
}
