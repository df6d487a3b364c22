use super::*;

#[test]
fn l06_an_api_key_with_a_line_end() {
    let build = |key: &str| Request::post("http://h/").bearer(key).build();
    let head = build("sk-test\r\n").unwrap().head;
    assert!(std::str::from_utf8(&head).unwrap().contains("\r\nauthorization: Bearer sk-test\r\n"));
    for bad in ["sk-te\nX-Evil: 1", "sk-te\0st", "", "\r\n"] {
        let error = build(bad).unwrap_err();
        assert_eq!(error, RequestError::HeaderValue { name: "authorization".to_owned() });
    }
    let error = Request::post("http://h/").header("x-key", "sk-te\r\nX-Evil: 1").build().unwrap_err();
    assert_eq!(error, RequestError::HeaderValue { name: "x-key".to_owned() });
    assert_eq!(
        Request::post("http://h/").header("x key", "v").build().unwrap_err(),
        RequestError::HeaderName
    );
}

#[test]
fn l07_no_debug_form_shows_a_key() {
    let builder = Request::post("http://h/v1?key=DO-NOT-PRINT")
        .bearer("DO-NOT-PRINT")
        .header("x-api-key", "DO-NOT-PRINT")
        .header("api-key", "DO-NOT-PRINT")
        .header("x-goog-api-key", "DO-NOT-PRINT")
        .header("proxy-authorization", "DO-NOT-PRINT")
        .header("x-of-ours", "DO-NOT-PRINT");
    assert!(format!("{builder:?}").contains("x-of-ours"));
    assert!(!format!("{builder:?}").contains("DO-NOT-PRINT"));
    assert!(!format!("{:?}", builder.build()).contains("DO-NOT-PRINT"));
}

#[test]
fn a_proxy_gets_the_whole_url_and_its_own_credentials() {
    let head = |request: Request| String::from_utf8(request.head.to_vec()).unwrap();
    let request = Request::post("http://[::1]:8080/v1?a=b").body("{}").build().unwrap();
    let proxy = Proxy::new("http://me:secret@proxy.test:3128").unwrap();
    assert_eq!(
        head(request.clone().forwarded_by(&proxy)),
        "POST http://[::1]:8080/v1?a=b HTTP/1.1\r\nhost: [::1]:8080\r\n\
         accept-encoding: identity\r\ncontent-length: 2\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    );
    assert!(!format!("{:?}", request.forwarded_by(&proxy)).contains("bWU6"));
    let own = Request::post("http://h").header("proxy-authorization", "Digest x").build().unwrap();
    assert!(head(own.forwarded_by(&proxy)).contains("\r\nproxy-authorization: Digest x\r\n"));
}

#[test]
fn a_stream_needs_a_dialect() {
    let error = Request::post("http://h/").stream().build().unwrap_err();
    assert_eq!(error, RequestError::StreamWithoutDialect);
}
