//! Requests that two servers could read differently: refused, or passed on in the one way that is left.

use crate::hostile::Attacked;

/// A POST with these fields, and behind it what would be smuggled
fn smuggles(fields: &str) -> String {
    format!(
        "POST /openai/v1 HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n\
         0\r\n\r\nGET /openai/smuggled HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"
    )
}

/// Each of these is refused with that status, and nothing at all reaches the provider
async fn refuses(status: u16, attacks: &[String]) {
    let attacked = Attacked::new().await;
    for attack in attacks {
        let (got, reached) = attacked.refused(attack).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{attack:?}: {got}");
        assert_eq!(got.matches("\r\nx-request-id: ").count(), 1, "{attack:?}: {got}");
        assert!(got.contains("connection: close\r\n") && got.contains(r#""code":"bad_request""#), "{got}");
        assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{attack:?}: {reached:?}");
    }
}

async fn refuses_fields(status: u16, fields: &[&str]) {
    refuses(status, &fields.iter().map(|fields| smuggles(fields)).collect::<Vec<_>>()).await;
}

async fn refuses_lines(status: u16, lines: &[&str]) {
    let behind = "\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    refuses(status, &lines.iter().map(|line| format!("{line}{behind}")).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_length_beside_chunks() {
    refuses_fields(
        400,
        &[
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "transfer-encoding: chunked\r\ncontent-length: 0",
            "Content-Length: 5\r\nTransfer-Encoding: identity",
            "Content-Length: 5\r\nTransfer-Encoding:",
        ],
    )
    .await;
}

#[tokio::test]
async fn lengths_repeated_listed_and_signed() {
    refuses_fields(
        400,
        &[
            "Content-Length: 5\r\nContent-Length: 5",
            "Content-Length: 5\r\ncontent-length: 6",
            "Content-Length: 5, 5",
            "Content-Length: 5,6",
            "Content-Length: +5",
            "Content-Length: -5",
            "Content-Length: 0x5",
            "Content-Length: 5 5",
            "Content-Length:",
            "Content-Length: 18446744073709551616",
        ],
    )
    .await;
}

#[tokio::test]
async fn transfer_encodings_that_are_not_one_chunked() {
    refuses_fields(
        400,
        &[
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding: identity",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: \"chunked\"",
            "Transfer-Encoding: chunked;q=1",
            "Transfer-Encoding:",
        ],
    )
    .await;
    refuses_fields(501, &["Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity, chunked"]).await;
}

#[tokio::test]
async fn a_transfer_encoding_where_there_is_none_in_http_1_0() {
    refuses(400, &[smuggles("Transfer-Encoding: chunked").replacen("HTTP/1.1", "HTTP/1.0", 1)]).await;
}

#[tokio::test]
async fn lines_that_end_in_something_else_than_crlf() {
    refuses_fields(
        400,
        &[
            "X: y\nTransfer-Encoding: chunked",
            "X: y\rTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r",
            "Content-Length: 5\n",
            "X: y\r\n\nX: y",
        ],
    )
    .await;
    refuses_lines(400, &["POST /openai/v1 HTTP/1.1\nX: y", "POST /openai/v1 HTTP/1.1\rX: y"]).await;
}

#[tokio::test]
async fn nul_bytes_folded_lines_and_blanks_before_a_colon() {
    refuses_fields(
        400,
        &[
            "X: a\0b\r\nContent-Length: 5",
            "X\0: a\r\nContent-Length: 5",
            "Content-Length: 5\0",
            "X: y\r\n Transfer-Encoding: chunked",
            "X: y\r\n\tTransfer-Encoding: chunked",
            "Transfer-Encoding:\r\n chunked",
            " Transfer-Encoding: chunked",
            "Transfer-Encoding : chunked",
            "Transfer-Encoding\t: chunked",
            "Content-Length : 5",
            "Transfer Encoding: chunked",
            "Transfer-Encoding",
            ": chunked",
        ],
    )
    .await;
}

#[tokio::test]
async fn hosts_that_are_not_exactly_one() {
    let head = |hosts: &str| format!("POST /openai/v1 HTTP/1.1\r\n{hosts}Content-Length: 2\r\n\r\n{{}}");
    let hosts = [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nhost: b\r\n",
        "Host: a, b\r\n",
        "Host:\r\n",
        "Host: u@a\r\n",
    ];
    refuses(400, &hosts.map(head)).await;
}

#[tokio::test]
async fn targets_of_a_proxy_and_methods_that_tunnel_or_echo() {
    refuses_lines(
        400,
        &[
            "POST http://other.example/openai/v1 HTTP/1.1",
            "POST https://other.example/openai/v1 HTTP/1.1",
            "POST other.example:443 HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "POST openai/v1 HTTP/1.1",
            "POST /openai/v1#fragment HTTP/1.1",
            "POST /openai/v1 x HTTP/1.1",
            "POST  /openai/v1 HTTP/1.1",
            "POST\t/openai/v1 HTTP/1.1",
            "POST /openai/\u{e9} HTTP/1.1",
            "POST /openai/v1",
            "P(ST /openai/v1 HTTP/1.1",
        ],
    )
    .await;
    refuses_lines(501, &["CONNECT other.example:443 HTTP/1.1", "TRACE /openai/v1 HTTP/1.1"]).await;
}

#[tokio::test]
async fn other_protocols() {
    refuses_lines(
        505,
        &["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST /openai/v1 HTTP/1.2", "POST /openai/v1 HTTP/3.0"],
    )
    .await;
    refuses_lines(400, &["\u{16}\u{3}\u{1}\0\u{5}hello", "POST /openai/v1 http/1.1", "\r\n\r\n\r\n\r\n\r\n"])
        .await;
}

#[tokio::test]
async fn heads_with_too_much_in_them() {
    let many = "X: y\r\n".repeat(300);
    let large = format!("X: {}", "y".repeat(70 << 10));
    refuses_fields(431, &[&many, &large]).await;
    refuses_lines(414, &[&format!("POST /openai/{} HTTP/1.1", "x".repeat(9 << 10))]).await;
}

/// Chunks that cannot be told apart end the call, of which the provider has a beginning by then
#[tokio::test]
async fn chunks_that_can_be_read_in_two_ways() {
    let attacked = Attacked::new().await;
    for chunks in [
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5;a=\0\r\nhello\r\n0\r\n\r\n",
        "5;a=\nb\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: y\nZ: w\r\n\r\n",
        "5\r\nhello\r\n0\r\nX : y\r\n\r\n",
    ] {
        let fields = "Transfer-Encoding: chunked";
        let attack = smuggles(fields).replace("\r\n\r\n0\r\n\r\n", &format!("\r\n\r\n{chunks}"));
        let (got, reached) = attacked.refused(&attack).await;
        assert!(got.starts_with("HTTP/1.1 400 "), "{chunks:?}: {got}");
        assert_eq!(got.matches("\r\nx-request-id: ").count(), 1, "{chunks:?}: {got}");
        assert!(reached.whole.is_empty() && reached.cut.len() <= 1, "{chunks:?}: {reached:?}");
        assert!(!format!("{reached:?}").contains("smuggled"), "{chunks:?}: {reached:?}");
    }
}

#[tokio::test]
async fn a_connection_field_has_no_say_in_the_framing() {
    let attacked = Attacked::new().await;
    for (framing, body, passed) in [
        ("Content-Length: 5", "hello", "Content-Length: 5\r\n"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"),
    ] {
        for named in
            ["content-length", "transfer-encoding", "host", "Content-Length, Transfer-Encoding, Host"]
        {
            let head =
                format!("POST /openai/v1 HTTP/1.1\r\nHost: a\r\nConnection: {named}\r\n{framing}\r\n\r\n");
            let (got, reached) = attacked.answered(head + body).await;
            assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
            let [(head, body)] = &reached.whole[..] else { panic!("{named}: {reached:?}") };
            assert!(head.contains(passed) && body == "hello", "{named}: {head:?}");
        }
    }
}

#[tokio::test]
async fn trailers_are_dropped_and_chunk_extensions_stripped() {
    let attacked = Attacked::new().await;
    let attack = "POST /openai/v1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
        2;a=\"b;\\\"c\"\r\nhe\r\n000000000000003;x\r\nllo\r\n0;last\r\nX: y\r\nContent-Length: 9\r\n\
        Transfer-Encoding: chunked\r\nHost: b\r\n\r\n";
    let (got, reached) = attacked.answered(attack).await;
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    let [(head, body)] = &reached.whole[..] else { panic!("{reached:?}") };
    assert_eq!(body, "hello");
    assert!(!head.contains("X: y") && !head.contains("Trailer"), "{head:?}");
}

#[tokio::test]
async fn what_is_pipelined_is_another_request_and_its_answer_comes_second() {
    let attacked = Attacked::new().await;
    let first = "POST /openai/first HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    let second = "GET /openai/second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (got, reached) = attacked.refused(format!("{first}{second}")).await;
    assert_eq!(got.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{got}");
    let heads: Vec<_> = reached.whole.iter().map(|(head, _)| head.split(' ').nth(1).unwrap()).collect();
    assert_eq!(heads, ["/first", "/second"]);
}

#[tokio::test]
async fn no_cut_of_an_attack_lets_it_through() {
    let attacked = Attacked::new().await;
    let attack = smuggles("Content-Length: 5\r\nTransfer-Encoding: chunked");
    for cut in (1..attack.len()).step_by(7) {
        let mut app = attacked.rig.app().await;
        app.0.set_nodelay(true).unwrap();
        app.send(&attack[..cut]).await;
        tokio::task::yield_now().await;
        // Who refuses may have closed before all is sent.
        _ = tokio::io::AsyncWriteExt::write_all(&mut app.0, &attack.as_bytes()[cut..]).await;
        assert!(app.rest().await.0.starts_with("HTTP/1.1 400 "), "{cut}");
    }
    let reached = attacked.reached().await;
    assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{reached:?}");
}
