use std::io::{self, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::call::{AttemptId, Request, RequestError};
use crate::machine::Supply;

fn waiting() -> Waker {
    waker(|| panic!("nothing here waits"))
}

fn request(body: &Body) -> Request {
    Request::post("http://h/").body(body.clone()).build().unwrap()
}

fn attempt(number: u32) -> AttemptId {
    serde_json::from_str(&number.to_string()).unwrap()
}

/// All that a feed reads for an attempt, so many bytes at a time
fn all(feed: &mut Feed, body: &Body, number: u32, piece: usize) -> Result<Vec<u8>, String> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; piece]);
    loop {
        match feed.supply(&request(body), attempt(number), &waiting(), &mut buffer).expect("it never waits") {
            Supply::Bytes(bytes) => all.extend_from_slice(bytes),
            Supply::End => return Ok(all),
            Supply::Failed(message) => return Err(message),
            Supply::Head(_) => panic!("no header fields are made"),
        }
    }
}

fn text(body: &Body, piece: usize) -> String {
    String::from_utf8(all(&mut Feed::default(), body, 1, piece).unwrap()).unwrap()
}

#[test]
fn a_form_is_the_same_in_any_pieces() {
    let file = Body::source(|| Ok(Ready(Cursor::new("abc")))).length(3);
    let form = Form::new()
        .text("purpose", "user_data")
        .part(Part::new("file", file).file_name("a \"b\"\r\n.txt").content_type("text/plain"))
        .part(Part::new("x\"y", Bytes::from_static(b"\x00\xff")));
    assert_eq!(form.content_type(), "multipart/form-data; boundary=steadfast-0000000000000000");
    let mut body = form.into_body().unwrap();
    let boundary = Boundary::of(7);
    assert!(body.set_boundary(boundary));
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a %22b%22%0D%0A.txt\"\r\n\
         Content-Type: text/plain\r\n\r\nabc\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"x%22y\"\r\n\r\n"
    );
    let expected = [expected.as_bytes(), b"\x00\xff", format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    assert_eq!(body.len(), Some(expected.len() as u64));
    for piece in [1, 2, 7, 26, 1_000] {
        assert_eq!(all(&mut Feed::default(), &body, 1, piece).unwrap(), expected, "{piece}");
    }
}

#[test]
fn a_form_of_related_parts_has_no_names() {
    let form = Form::related()
        .part(Part::new("", "{}").content_type("application/json"))
        .part(Part::new("", "abc").content_type("text/plain"));
    assert_eq!(form.content_type(), "multipart/related; boundary=steadfast-0000000000000000");
    let body = form.into_body().unwrap();
    let unset = Boundary::UNSET;
    assert_eq!(
        text(&body, 100),
        format!(
            "--{unset}\r\nContent-Type: application/json\r\n\r\n{{}}\r\n\
             --{unset}\r\nContent-Type: text/plain\r\n\r\nabc\r\n--{unset}--\r\n"
        )
    );
    assert_eq!(text(&Form::new().into_body().unwrap(), 9), format!("--{unset}--\r\n"));
}

#[test]
fn boundaries_are_drawn_from_the_seed() {
    let boundaries: std::collections::BTreeSet<String> =
        (0..1_000).map(|seed| Boundary::of(seed).to_string()).collect();
    assert_eq!(boundaries.len(), 1_000);
    assert!(boundaries.iter().all(|boundary| boundary.len() == Boundary::BYTES));
    assert!(Boundary::of(3) == Boundary::of(3));
}

#[test]
fn one_part_of_unknown_length_makes_the_form_so_and_one_read_once_too() {
    let again = || Body::source(|| Ok(Ready(Cursor::new("x"))));
    let form = |body: Body| Form::new().text("a", "b").part(Part::new("c", body)).into_body().unwrap();
    for (body, length, is_replayable) in [
        (form(again()), false, true),
        (form(again().length(1)), true, true),
        (form(Body::once(Ready(Cursor::new("x")))), false, false),
        (form(Body::once(Ready(Cursor::new("x"))).length(1)), true, false),
        (form("x".into()), true, true),
    ] {
        assert_eq!((body.len().is_some(), body.is_replayable()), (length, is_replayable));
        assert_eq!(body.len().unwrap_or(text(&body, 5).len() as u64), text_len(&form("x".into())));
    }
}

fn text_len(body: &Body) -> u64 {
    text(body, 1).len() as u64
}

#[test]
fn a_content_type_that_cannot_be_sent_is_refused() {
    for media_type in ["", " ", "text/plain\r\nx: y", "text/pläin", "a\0"] {
        let form = Form::new().part(Part::new("a", "b").content_type(media_type));
        let error = Request::post("http://h/").form(form).build().unwrap_err();
        assert_eq!(error, RequestError::Part, "{media_type:?}");
    }
}

#[test]
fn each_attempt_begins_anew_as_far_as_the_body_was_read() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let body = Body::source(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Ready(Cursor::new("abcdef")))
    });
    let mut feed = Feed::default();
    let mut buffer = [0; 4];
    assert_eq!(
        feed.supply(&request(&body), attempt(1), &waiting(), &mut buffer),
        Some(Supply::Bytes(b"abcd"))
    );
    assert_eq!(all(&mut feed, &body, 2, 4).as_deref(), Ok(&b"abcdef"[..]));
    assert_eq!(opened.load(Ordering::Relaxed), 2);
}

/// Has nothing yet at its first read
struct Late(bool);

impl BodySource for Late {
    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        if !std::mem::replace(&mut self.0, true) {
            waker.wake_by_ref();
            return None;
        }
        buffer[0] = b'x';
        Some(Ok(1))
    }
}

#[test]
fn what_was_opened_and_not_read_serves_the_next_attempt() {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    let waker = waker(move || _ = count.fetch_add(1, Ordering::Relaxed));
    let body = Body::once(Late(false));
    let mut feed = Feed::default();
    let mut buffer = [0; 4];
    assert_eq!(feed.supply(&request(&body), attempt(1), &waker, &mut buffer), None);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(feed.supply(&request(&body), attempt(2), &waker, &mut buffer), Some(Supply::Bytes(b"x")));
    let read_before = feed.supply(&request(&body), attempt(3), &waker, &mut buffer);
    assert!(matches!(&read_before, Some(Supply::Failed(message)) if message.contains("read before")));
}

#[test]
fn what_fails_is_told_in_words() {
    struct Lies;
    impl BodySource for Lies {
        fn read(&mut self, _: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
            Some(Ok(buffer.len() + 1))
        }
    }
    let body = Body::source(|| Err::<Lies, _>(io::Error::other("no such file")));
    let error = all(&mut Feed::default(), &body, 1, 4).unwrap_err();
    assert_eq!(error, "the body cannot be read: no such file");
    let error = all(&mut Feed::default(), &Body::once(Lies), 1, 4).unwrap_err();
    assert_eq!(error, "the body cannot be read: the source read more than it could");
}

#[test]
fn no_debug_form_shows_a_byte() {
    let form = Form::new().text("name", "s3cret");
    assert!(!format!("{form:?} {:?}", Body::from("s3cret")).contains("s3cret"));
}
