//! The server's side of a file.

use std::time::Duration;

use super::data::{Fragments, chunk};
use super::node::{Fields, Node, nearest};
use super::{Fault, Problem};
use crate::script::{Connection, Listen, Read, Script, Server, Step};

/// Steps that are one word
const WORDS: [&str; 7] = ["last-chunk", "fin", "close-notify", "await-close", "hold", "close", "rst"];

/// Steps that say more
const KINDS: [&str; 8] = ["read", "send", "head", "answer", "chunk", "trickle", "pause", "repeat"];

/// No trickle has more pieces
const MOST_PIECES: usize = 100_000;

pub(super) fn script(fields: &mut Fields) -> Result<Script, Fault> {
    let name = fields.required("name")?;
    let plain =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if !name.value.as_str().is_some_and(|name| !name.is_empty() && name.chars().all(plain)) {
        return Err(name.fault(Problem::Type("a string of lower-case letters, digits and -")));
    }
    let name = name.string()?;
    let about = fields.required("about")?.string()?;
    let server = server(fields.take("server"))?;
    let fragments = Fragments::parse(fields.take("bytes"))?;
    let connections = fields.take("connection");
    let connections = match (server.listen, connections) {
        (Listen::Accept, None) => {
            return Err(Fault { field: "connection".to_owned(), problem: Problem::Missing });
        }
        (Listen::Accept, Some(node)) => {
            let empty = node.invalid("at least one is needed");
            let connections = node.list()?;
            if connections.is_empty() {
                return Err(empty);
            }
            let parse = |node| connection(node, &fragments, server.tls);
            connections.into_iter().map(parse).collect::<Result<_, _>>()?
        }
        (Listen::Refuse | Listen::FullBacklog, None) => Vec::new(),
        (Listen::Refuse | Listen::FullBacklog, Some(node)) => {
            return Err(node.invalid("a server that does not accept has no connections"));
        }
    };
    Ok(Script { name, about, server, connections })
}

fn server(node: Option<Node>) -> Result<Server, Fault> {
    let mut server = Server { listen: Listen::Accept, tls: false, receive_buffer: None, send_buffer: None };
    let Some(node) = node else { return Ok(server) };
    let mut fields = node.fields()?;
    if let Some(node) = fields.take("listen") {
        server.listen = node.word(&[
            ("accept", Listen::Accept),
            ("refuse", Listen::Refuse),
            ("full-backlog", Listen::FullBacklog),
        ])?;
    }
    server.tls = fields.take("tls").map_or(Ok(false), Node::boolean)?;
    server.receive_buffer = fields.take("receive_buffer").map(Node::positive).transpose()?;
    server.send_buffer = fields.take("send_buffer").map(Node::positive).transpose()?;
    fields.finish()?;
    Ok(server)
}

fn connection(node: Node, fragments: &Fragments, tls: bool) -> Result<Connection, Fault> {
    let mut fields = node.fields()?;
    let times = fields.take("times").map_or(Ok(1), Node::positive)?;
    let list = fields.required("steps")?;
    fields.finish()?;
    let path = list.path.clone();
    let steps = steps(list, fragments, tls)?;
    if !steps.last().is_some_and(Step::ends) {
        let problem = Problem::Invalid(
            "must end in await-close, hold, close, rst or a repeat without end, so that the file says how the \
             connection ends"
                .to_owned(),
        );
        return Err(Fault { field: path, problem });
    }
    Ok(Connection { times, steps })
}

fn steps(list: Node, fragments: &Fragments, tls: bool) -> Result<Vec<Step>, Fault> {
    let mut steps: Vec<Step> = Vec::new();
    for node in list.list()? {
        if steps.last().is_some_and(Step::ends) {
            return Err(node.invalid("nothing can follow the step before"));
        }
        if node.value.is_str() {
            steps.push(word(&node, tls)?);
        } else {
            more(node, fragments, tls, &mut steps)?;
        }
    }
    Ok(steps)
}

fn word(node: &Node, tls: bool) -> Result<Step, Fault> {
    Ok(match node.value.as_str().unwrap_or_default() {
        "last-chunk" => Step::Send(b"0\r\n\r\n".to_vec()),
        "fin" => Step::Fin,
        "close-notify" if tls => Step::CloseNotify,
        "close-notify" => return Err(node.invalid("there is no close-notify without server.tls")),
        "await-close" => Step::AwaitClose,
        "hold" => Step::Hold,
        "close" => Step::Close,
        "rst" => Step::Reset,
        other => {
            let nearest = nearest(other, WORDS.into_iter().chain(KINDS));
            return Err(node.invalid(format!("`{other}` is no step; did you mean `{nearest}`?")));
        }
    })
}

/// Adds the steps that a table describes: several for a trickle
fn more(node: Node, fragments: &Fragments, tls: bool, steps: &mut Vec<Step>) -> Result<(), Fault> {
    let (kind, node) = node.fields()?.only(&KINDS)?;
    steps.push(match kind {
        "read" => Step::Read(read(node)?),
        "send" => Step::Send(fragments.resolve(&node)?),
        "head" => Step::Send(head(node, None)?),
        "answer" => {
            let mut fields = node.fields()?;
            let lines = fields.required("head")?;
            let body = fragments.resolve(&fields.required("body")?)?;
            fields.finish()?;
            let mut answer = head(lines, Some(body.len()))?;
            answer.extend(body);
            Step::Send(answer)
        }
        "chunk" => Step::Send(chunk(&node, &fragments.resolve(&node)?)?),
        "trickle" => return trickle(node, fragments, steps),
        "pause" => Step::Pause(node.seconds()?),
        _ => repeat(node, fragments, tls)?,
    });
    Ok(())
}

fn read(node: Node) -> Result<Read, Fault> {
    if node.value.is_integer() {
        return node.positive().map(|bytes| Read::Bytes(u64::from(bytes)));
    }
    node.word(&[("head", Read::Head), ("request", Read::Request)])
}

/// The status line without its version, then the header lines; the length of the body where stated
fn head(node: Node, length: Option<usize>) -> Result<Vec<u8>, Fault> {
    let shape = node.fault(Problem::Type("a list of the status and the header lines"));
    let invalid =
        node.invalid("a status is three digits, a header is `name: value`, and neither has a line break");
    let lines = node.strings()?;
    let (status, headers) = lines.split_first().ok_or(shape)?;
    let digits = status.split(' ').next().unwrap_or_default();
    let broken = lines.iter().any(|line| line.contains(['\r', '\n']));
    if digits.len() != 3
        || !digits.bytes().all(|digit| digit.is_ascii_digit())
        || headers.iter().any(|line| !line.contains(": "))
        || broken
    {
        return Err(invalid);
    }
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for line in headers {
        head.push_str(line);
        head.push_str("\r\n");
    }
    if let Some(length) = length {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    Ok(head.into_bytes())
}

fn trickle(node: Node, fragments: &Fragments, steps: &mut Vec<Step>) -> Result<(), Fault> {
    let too_many = node.invalid(format!("more than {MOST_PIECES} pieces"));
    let mut fields = node.fields()?;
    let data = fragments.resolve(&fields.required("data")?)?;
    let size = fields.take("size").map_or(Ok(1), Node::positive)? as usize;
    let every: Duration = fields.required("every")?.seconds()?;
    fields.finish()?;
    let pieces = data.chunks(size);
    if pieces.len() > MOST_PIECES {
        return Err(too_many);
    }
    for (at, piece) in pieces.enumerate() {
        if at > 0 {
            steps.push(Step::Pause(every));
        }
        steps.push(Step::Send(piece.to_vec()));
    }
    Ok(())
}

fn repeat(node: Node, fragments: &Fragments, tls: bool) -> Result<Step, Fault> {
    let mut fields = node.fields()?;
    let times = match fields.required("times")? {
        node if node.value.as_str() == Some("forever") => None,
        node => Some(node.positive()?),
    };
    let list = fields.required("steps")?;
    fields.finish()?;
    let empty = list.invalid("at least one step is needed");
    let ended = list.invalid("a step that ends the connection cannot be repeated");
    let steps = steps(list, fragments, tls)?;
    match steps.last() {
        None => Err(empty),
        Some(last) if last.ends() => Err(ended),
        Some(_) => Ok(Step::Repeat { times, steps }),
    }
}
