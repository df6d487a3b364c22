use super::*;

fn headers(lines: &[&'static str]) -> HeaderMap {
    lines.iter().map(|line| (CONTENT_ENCODING, line.parse().unwrap())).collect()
}

#[test]
fn c05_identity_needs_no_decoder() {
    for encoding in ["", "identity", "Identity", " identity , ", ","] {
        assert!(matches!(Decoder::new(encoding), Ok(None)), "{encoding:?}");
    }
    assert!(matches!(Decoder::for_headers(&HeaderMap::new()), Ok(None)));
    assert!(matches!(Decoder::for_headers(&headers(&["identity", ""])), Ok(None)));
}

#[test]
fn what_cannot_be_decoded_is_named() {
    for encoding in
        ["br", "zstd", "gzip, deflate", "gzip, gzip", "compress", "gzip;q=1", "gzip deflate", "\u{e9}"]
    {
        let error = Decoder::new(encoding).unwrap_err();
        assert_eq!(&*error.encoding, encoding);
    }
    let error = Decoder::for_headers(&headers(&["gzip", "br"])).unwrap_err();
    assert_eq!(&*error.encoding, "gzip,br");
    let text = Decoder::new("b\"r\r\n").unwrap_err().to_string();
    assert!(text.starts_with("unsupported Content-Encoding \"b\\\"r\\r\\n\""), "{text}");
    assert_eq!(Decoder::new(&"x".repeat(1 << 16)).unwrap_err().encoding.len(), 64);
}

#[cfg(feature = "content-decoding")]
#[test]
fn what_can_be_decoded_is_known_in_any_case_and_place() {
    for encoding in ["gzip", "x-gzip", "X-GZip", "deflate", "identity, Deflate", " gzip , identity"] {
        assert!(matches!(Decoder::new(encoding), Ok(Some(_))), "{encoding:?}");
    }
    assert!(matches!(Decoder::for_headers(&headers(&["identity", "gzip"])), Ok(Some(_))));
}

#[cfg(not(feature = "content-decoding"))]
#[test]
fn c05_without_the_feature_every_coding_is_refused() {
    for encoding in ["gzip", "x-gzip", "deflate"] {
        let error = Decoder::new(encoding).unwrap_err();
        let text =
            format!("unsupported Content-Encoding {encoding:?} (built without the feature content-decoding)");
        assert_eq!(error.to_string(), text);
    }
}
