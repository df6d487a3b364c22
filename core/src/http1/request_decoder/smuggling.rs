//! Requests that two servers could read differently: each is refused, wherever it is cut.

use super::tests::{refused, told};
use crate::http1::RequestFault as Fault;

/// A POST with these fields, and behind it what would be smuggled
fn post(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn a_length_and_chunks() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "content-length: 5\r\ntransfer-encoding: identity",
        "Content-Length: 5\r\nTransfer-Encoding:",
        "Content-Length:\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 6",
    ] {
        assert_eq!(refused(&post(fields)), Fault::LengthAndTransferEncoding, "{fields:?}");
    }
}

#[test]
fn lengths_that_are_not_one_number() {
    for (fields, fault) in [
        ("Content-Length: 5\r\nContent-Length: 5", Fault::RepeatedContentLength),
        ("Content-Length: 5\r\ncontent-length: 6", Fault::RepeatedContentLength),
        ("Content-Length: 5, 5", Fault::RepeatedContentLength),
        ("Content-Length: 5,6", Fault::RepeatedContentLength),
        ("Content-Length: 5,", Fault::RepeatedContentLength),
        ("Content-Length: +5", Fault::BadContentLength),
        ("Content-Length: -5", Fault::BadContentLength),
        ("Content-Length: -0", Fault::BadContentLength),
        ("Content-Length:", Fault::BadContentLength),
        ("Content-Length: 0x5", Fault::BadContentLength),
        ("Content-Length: 5.0", Fault::BadContentLength),
        ("Content-Length: 5 5", Fault::BadContentLength),
        ("Content-Length: 1_0", Fault::BadContentLength),
        ("Content-Length: 5e0", Fault::BadContentLength),
        ("Content-Length: \"5\"", Fault::BadContentLength),
        ("Content-Length: 5;", Fault::BadContentLength),
        ("Content-Length: \u{665}", Fault::BadContentLength),
        ("Content-Length: 18446744073709551616", Fault::BadContentLength),
        ("Content-Length: 5\x0B", Fault::ControlByte),
        ("Content-Length: 5\0", Fault::ControlByte),
    ] {
        assert_eq!(refused(&post(fields)), fault, "{fields:?}");
    }
}

#[test]
fn transfer_encodings_that_are_not_exactly_chunked() {
    for (fields, fault) in [
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Fault::BadTransferEncoding),
        ("Transfer-Encoding: x\r\nTransfer-encoding: chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked, chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked, identity", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked, gzip", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked,", Fault::BadTransferEncoding),
        ("Transfer-Encoding: , chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked;q=1", Fault::BadTransferEncoding),
        ("Transfer-Encoding: \"chunked\"", Fault::BadTransferEncoding),
        ("Transfer-Encoding: 'chunked'", Fault::BadTransferEncoding),
        ("Transfer-Encoding: xchunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunke", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chunked chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: chun\tked", Fault::BadTransferEncoding),
        ("Transfer-Encoding:", Fault::BadTransferEncoding),
        ("Transfer-Encoding: identity", Fault::BadTransferEncoding),
        ("Transfer-Encoding: cow", Fault::BadTransferEncoding),
        ("Transfer-Encoding: \u{a0}chunked", Fault::BadTransferEncoding),
        ("Transfer-Encoding: gzip, chunked", Fault::UnsupportedTransferEncoding),
        ("Transfer-Encoding: identity, chunked", Fault::UnsupportedTransferEncoding),
        ("Transfer-Encoding: \x0Bchunked", Fault::ControlByte),
        ("Transfer-Encoding: chunked\x0C", Fault::ControlByte),
        ("Transfer-Encoding: chunked\0", Fault::ControlByte),
        ("Transfer-Encoding : chunked", Fault::SpaceBeforeColon),
        ("Transfer-Encoding\t: chunked", Fault::SpaceBeforeColon),
        (" Transfer-Encoding: chunked", Fault::FoldedLine),
        ("X: y\r\n Transfer-Encoding: chunked", Fault::FoldedLine),
        ("Transfer-Encoding:\r\n chunked", Fault::FoldedLine),
        ("Transfer-Encoding: chunked\r\n\t", Fault::FoldedLine),
        ("Transfer-Encoding\0: chunked", Fault::BadFieldName),
        ("\0Transfer-Encoding: chunked", Fault::BadFieldName),
        ("Transfer Encoding: chunked", Fault::BadFieldName),
        ("\"Transfer-Encoding\": chunked", Fault::BadFieldName),
        ("X: y\nTransfer-Encoding: chunked", Fault::BareLineFeed),
        ("X: y\rTransfer-Encoding: chunked", Fault::BareCarriageReturn),
        ("Transfer-Encoding: chunked\rX: y", Fault::BareCarriageReturn),
        ("Transfer-Encoding: chunked\r\r", Fault::BareCarriageReturn),
    ] {
        assert_eq!(refused(&post(fields)), fault, "{fields:?}");
    }
    let old =
        post("Transfer-Encoding: chunked").replace("HTTP/1.1\r\nHost: a\r\nT", "HTTP/1.0\r\nHost: a\r\nT");
    assert_eq!(refused(&old), Fault::TransferEncodingInHttp10);
}

#[test]
fn lines_that_end_in_something_else_than_crlf() {
    for (text, fault) in [
        ("GET / HTTP/1.1\nHost: a\n\n", Fault::BareLineFeed),
        ("GET / HTTP/1.1\rHost: a\r\r", Fault::BareCarriageReturn),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", Fault::BareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", Fault::BareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rGET", Fault::BareCarriageReturn),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n", Fault::BareCarriageReturn),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Fault::BareLineFeed),
        ("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", Fault::BareCarriageReturn),
    ] {
        assert_eq!(refused(text), fault, "{text:?}");
    }
}

#[test]
fn chunks_that_can_be_read_in_two_ways() {
    let chunked = |body: &str| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        refused(&format!("{head}{body}GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"))
    };
    for (body, fault) in [
        ("0\n\n", Fault::BadChunkSize),
        ("1\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("1\rx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("0x1\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("+1\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("-1\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("1_0\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        (" 1\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("1 \r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("\r\n1\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("00000000000000001\r\nx\r\n0\r\n\r\n", Fault::ChunkSizeTooLong),
        ("10000000000000001\r\nx\r\n0\r\n\r\n", Fault::ChunkSizeTooLong),
        ("1;a\nb\r\nx\r\n0\r\n\r\n", Fault::BadChunkExtension),
        ("1;\n\r\nx\r\n0\r\n\r\n", Fault::BadChunkExtension),
        ("1;a\rb\r\nx\r\n0\r\n\r\n", Fault::BadChunkSize),
        ("1;\0\r\nx\r\n0\r\n\r\n", Fault::BadChunkExtension),
        ("1\r\nx\n0\r\n\r\n", Fault::BadChunkEnd),
        ("1\r\nx\r0\r\n\r\n", Fault::BadChunkEnd),
        ("1\r\nxy\r\n0\r\n\r\n", Fault::BadChunkEnd),
        ("1\r\nx0\r\n\r\n", Fault::BadChunkEnd),
        ("0\r\n\n", Fault::BareLineFeed),
        ("0\r\nX: y\n\r\n", Fault::BareLineFeed),
        ("0\r\n\rX: y\r\n\r\n", Fault::BareCarriageReturn),
        ("0\r\n X: y\r\n\r\n", Fault::FoldedLine),
        ("0\r\nX : y\r\n\r\n", Fault::SpaceBeforeColon),
    ] {
        assert_eq!(chunked(body), fault, "{body:?}");
    }
}

#[test]
fn hosts_that_disagree() {
    for (text, fault) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Fault::RepeatedHost),
        ("GET / HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", Fault::RepeatedHost),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Fault::RepeatedHost),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", Fault::BadHost),
        ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", Fault::BadHost),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Fault::BadHost),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Fault::BadHost),
        ("GET / HTTP/1.0\r\nHost:\r\n\r\n", Fault::BadHost),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Fault::SpaceBeforeColon),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Fault::FoldedLine),
        ("GET / HTTP/1.1\r\n\r\n", Fault::NoHost),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", Fault::AbsoluteTarget),
        ("GET b:80 HTTP/1.1\r\nHost: a\r\n\r\n", Fault::NoPath),
    ] {
        assert_eq!(refused(text), fault, "{text:?}");
    }
}

#[test]
fn what_connection_names_changes_no_framing() {
    let text = "POST / HTTP/1.1\r\nHost: a\r\nConnection: content-length, transfer-encoding, host\r\n\
        Content-Length: 5\r\n\r\n0\r\n\r\n";
    let requests = told(text).requests;
    assert_eq!((requests.len(), &requests[0].body[..]), (1, &b"0\r\n\r\n"[..]));
}
