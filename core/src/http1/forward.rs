//! stand-in
use std::io::Write as _;
use bytes::Bytes;
use http::{StatusCode, Version};
use super::{BodyLength, Fields, IncomingRequest};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFraming { NoBody, Length(u64), Chunked, UntilClose }

const HOP: [&str; 9] = ["connection","keep-alive","proxy-connection","proxy-authorization","te","trailer","transfer-encoding","upgrade","proxy-authenticate"];

fn is_hop(fields: &Fields, name: &str) -> bool {
    HOP.iter().any(|hop| hop.eq_ignore_ascii_case(name))
        || (fields.members("connection").any(|token| token.eq_ignore_ascii_case(name.as_bytes())) && !name.eq_ignore_ascii_case("content-length"))
}

pub fn forward_request(request: &IncomingRequest, target: &str, host: &str, drops: impl Fn(&str, &[u8]) -> bool, added: &[(&str, &[u8])], out: &mut Vec<u8>) {
    write!(out, "{} {target} HTTP/1.1\r\nHost: {host}\r\n", request.method).unwrap();
    for (name, value) in request.fields.iter() {
        if is_hop(&request.fields, name) || name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case("expect") || drops(name, value) { continue; }
        out.extend_from_slice(name.as_bytes()); out.extend_from_slice(b": "); out.extend_from_slice(value); out.extend_from_slice(b"\r\n");
    }
    for (name, value) in added {
        out.extend_from_slice(name.as_bytes()); out.extend_from_slice(b": "); out.extend_from_slice(value); out.extend_from_slice(b"\r\n");
    }
    if request.body == BodyLength::Chunked { out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"); }
    out.extend_from_slice(b"\r\n");
}

pub fn forward_response(_: Version, status: StatusCode, reason: &Bytes, fields: &Fields, framing: AnswerFraming, keeps_alive: bool, out: &mut Vec<u8>) {
    write!(out, "HTTP/1.1 {} ", status.as_u16()).unwrap();
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    let chunked = framing == AnswerFraming::Chunked;
    let mut has = false;
    for (name, value) in fields.iter() {
        if chunked && name.eq_ignore_ascii_case("transfer-encoding") { has = true; } else if is_hop(fields, name) { continue; }
        out.extend_from_slice(name.as_bytes()); out.extend_from_slice(b": "); out.extend_from_slice(value); out.extend_from_slice(b"\r\n");
    }
    if chunked && !has { out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"); }
    if !keeps_alive { out.extend_from_slice(b"Connection: close\r\n"); }
    out.extend_from_slice(b"\r\n");
}
