//! The caller's side of a file, and what is expected.

use std::collections::BTreeMap;
use std::time::Duration;

use super::node::{Fields, Node, nearest};
use super::steps;
use super::{Fault, Problem};
use crate::scenario::{Billing, Call, Cancel, Consumer, Dialect, End, Expect, Phase, Scenario, Seen, Shape};

/// How late a timeout may be seen on real sockets, where a file does not say
const TOLERANCE: Duration = Duration::from_millis(250);

/// The fields of the configuration (rules, CFG); their values are validated by whoever makes the call
const CONFIG: [&str; 17] = [
    "connect_timeout",
    "request_timeout",
    "stream_idle_timeout",
    "total_deadline",
    "max_attempts",
    "mcp_connect_timeout",
    "mcp_request_timeout",
    "stream_deadline",
    "content_idle_timeout",
    "first_content_timeout",
    "after_sentinel",
    "after_marker",
    "max_retry_after",
    "tool_timeout",
    "max_event_bytes",
    "max_head_bytes",
    "max_body_bytes",
];

pub(super) fn scenario(mut fields: Fields) -> Result<Scenario, Fault> {
    let script = steps::script(&mut fields)?;
    let tolerance = fields.take("tolerance").map_or(Ok(TOLERANCE), Node::seconds)?;
    let call = call(fields.required("call")?)?;
    let expect = fields.required("expect")?;
    let none = expect.invalid("at least one is needed");
    let expect = expect.list()?.into_iter().map(self::expect).collect::<Result<Vec<_>, _>>()?;
    if expect.is_empty() {
        return Err(none);
    }
    let seen = fields.take("seen").map_or(Ok(Seen::default()), seen)?;
    fields.finish()?;
    Ok(Scenario { tolerance, call, script, expect, seen })
}

fn call(node: Node) -> Result<Call, Fault> {
    let mut fields = node.fields()?;
    let shape = fields.required("shape")?.word(&[("unary", Shape::Unary), ("stream", Shape::Stream)])?;
    let dialect = fields.required("dialect")?.word(&[
        ("openai-chat", Dialect::OpenaiChat),
        ("openai-responses", Dialect::OpenaiResponses),
        ("anthropic", Dialect::Anthropic),
        ("gemini", Dialect::Gemini),
    ])?;
    let config = fields.take("config").map_or(Ok(BTreeMap::new()), config)?;
    let body_bytes = fields.take("body_bytes").map_or(Ok(0), Node::positive)?;
    let consumer = fields.take("consumer").map(|node| consumer(node, shape)).transpose()?;
    let cancel = fields.take("cancel").map(cancel).transpose()?;
    let calls = fields.take("calls").map_or(Ok(1), Node::positive)?;
    let parallel = fields.take("parallel").map_or(Ok(false), Node::boolean)?;
    fields.finish()?;
    Ok(Call { shape, dialect, config, body_bytes: u64::from(body_bytes), consumer, cancel, calls, parallel })
}

fn config(node: Node) -> Result<BTreeMap<String, f64>, Fault> {
    let mut config = BTreeMap::new();
    for (name, node) in node.fields()?.entries() {
        if !CONFIG.contains(&name.as_str()) {
            let nearest = nearest(&name, CONFIG.into_iter()).to_owned();
            return Err(node.fault(Problem::Unknown { nearest }));
        }
        config.insert(name, node.number()?);
    }
    Ok(config)
}

fn consumer(node: Node, shape: Shape) -> Result<Consumer, Fault> {
    if shape != Shape::Stream {
        return Err(node.invalid("only a stream has a consumer"));
    }
    let mut fields = node.fields()?;
    let pause = fields.required("pause")?.seconds()?;
    let every = fields.take("every").map_or(Ok(1), Node::positive)?;
    fields.finish()?;
    Ok(Consumer { pause, every })
}

fn cancel(node: Node) -> Result<Cancel, Fault> {
    if node.value.is_str() {
        return node.word(&[("after-turn", Cancel::AfterTurn)]);
    }
    Ok(match node.fields()?.only(&["at", "after_deltas"])? {
        ("at", node) => Cancel::At(node.seconds()?),
        (_, node) => Cancel::AfterDeltas(node.positive()?),
    })
}

fn expect(node: Node) -> Result<Expect, Fault> {
    let path = node.path.clone();
    let mut fields = node.fields()?;
    let result = fields.required("result")?.word(&[
        ("completed", End::Completed),
        ("incomplete", End::Incomplete),
        ("blocked", End::Blocked),
        ("timeout", End::Timeout),
        ("status", End::Status),
        ("in-band", End::InBand),
        ("truncated", End::Truncated),
        ("empty", End::Empty),
        ("transport", End::Transport),
        ("protocol", End::Protocol),
        ("proxy", End::Proxy),
        ("cancelled", End::Cancelled),
        ("consumer", End::Consumer),
    ])?;
    let phase = fields.take("phase").map(|node| {
        node.word(&[
            ("connect", Phase::Connect),
            ("request", Phase::Request),
            ("stream_idle", Phase::StreamIdle),
            ("deadline", Phase::Deadline),
            ("content_idle", Phase::ContentIdle),
            ("first_content", Phase::FirstContent),
            ("queue", Phase::Queue),
        ])
    });
    let billing = fields.take("billing").map(|node| {
        node.word(&[
            ("not_sent", Billing::NotSent),
            ("maybe_billed", Billing::MaybeBilled),
            ("delivered", Billing::Delivered),
        ])
    });
    let expect = Expect {
        times: fields.take("times").map_or(Ok(1), Node::positive)?,
        result,
        phase: phase.transpose()?,
        limit: fields.take("limit").map(Node::seconds).transpose()?,
        status: fields.take("status").map(status).transpose()?,
        body: fields.take("body").map(Node::string).transpose()?,
        finish_reason: fields.take("finish_reason").map(Node::string).transpose()?,
        text: fields.take("text").map(Node::string).transpose()?,
        text_bytes: fields.take("text_bytes").map(Node::count).transpose()?.map(u64::from),
        output_tokens: fields.take("output_tokens").map(Node::count).transpose()?.map(u64::from),
        attempts: fields.take("attempts").map(Node::count).transpose()?,
        billing: billing.transpose()?,
        min_elapsed: fields.take("min_elapsed").map(Node::seconds).transpose()?,
        max_elapsed: fields.take("max_elapsed").map(Node::seconds).transpose()?,
        max_turn_at: fields.take("max_turn_at").map(Node::seconds).transpose()?,
    };
    fields.finish()?;
    consistent(&expect).map_err(|what| Fault { field: path, problem: Problem::Invalid(what.to_owned()) })?;
    Ok(expect)
}

fn status(node: Node) -> Result<u16, Fault> {
    let invalid = node.invalid("a status lies between 100 and 999");
    match u16::try_from(node.count()?) {
        Ok(status @ 100..=999) => Ok(status),
        Ok(_) | Err(_) => Err(invalid),
    }
}

/// What belongs to one kind of end must be there for it, and for no other
fn consistent(expect: &Expect) -> Result<(), &'static str> {
    let timeout = expect.result == End::Timeout;
    if expect.phase.is_some() != timeout || expect.limit.is_some() != timeout {
        return Err("phase and limit belong to a timeout, and both are needed there");
    }
    let status = expect.result == End::Status;
    if expect.status.is_some() != status || (expect.body.is_some() && !status) {
        return Err("status and body belong to a status, and the status is needed there");
    }
    if expect.max_turn_at.is_some() && !matches!(expect.result, End::Completed | End::Incomplete) {
        return Err("max_turn_at belongs to a completed turn");
    }
    if let (Some(least), Some(most)) = (expect.min_elapsed, expect.max_elapsed)
        && least > most
    {
        return Err("min_elapsed is more than max_elapsed");
    }
    Ok(())
}

fn seen(node: Node) -> Result<Seen, Fault> {
    let mut fields = node.fields()?;
    let seen = Seen {
        connections: fields.take("connections").map(Node::count).transpose()?,
        requests: fields.take("requests").map(Node::count).transpose()?,
        min_blocked: fields.take("min_blocked").map(Node::seconds).transpose()?,
        max_received: fields.take("max_received").map(Node::count).transpose()?.map(u64::from),
        closed_by_peer: fields.take("closed_by_peer").map(Node::count).transpose()?,
    };
    fields.finish()?;
    Ok(seen)
}
