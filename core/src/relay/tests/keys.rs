//! Keys of the relay's own: who is let in, and that the key goes no further.

use std::sync::Arc;

use super::rig::{Rig, routes};
use crate::http1::Fields;
use crate::relay::{APP_KEY_FIELD, AppKey, Code, Gate, Routes};

/// Lets in whoever shows `k1` in the relay's own field, and takes it for one in `x-api-key` too
struct Known;

impl Gate for Known {
    fn admit(&self, fields: &Fields) -> Option<AppKey> {
        let is_known = fields.get(APP_KEY_FIELD) == Some(b"k1");
        is_known.then(|| AppKey { label: "laptop".into(), fields: vec![APP_KEY_FIELD, "x-api-key"] })
    }
}

fn request(key: &str) -> String {
    format!(
        "POST /openai/v1/chat HTTP/1.1\r\nHost: relay\r\nX-Steadfast-Key: {key}\r\nX-API-Key: {key}\r\n\
         Authorization: Bearer sk-1\r\nContent-Length: 0\r\n\r\n"
    )
}

#[test]
fn a_key_goes_no_further_in_any_field_that_it_came_in() {
    let gated = Routes::clone(&routes(|_| {})).gated(Arc::new(Known));
    let mut rig = Rig::with(Arc::new(gated), false);
    rig.app_sends(request("k1"));
    rig.connected();
    let sent = "POST /v1/chat HTTP/1.1\r\nHost: up.example:8080\r\nAuthorization: Bearer sk-1\r\n\
        Content-Length: 0\r\n\r\n";
    assert_eq!(rig.up_text(1), sent);
    rig.up_sends("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(rig.over[0].app.as_deref(), Some("laptop"));
    rig.app_sends(request("k2"));
    rig.refused(Code::Unauthorized);
}

#[test]
fn the_field_for_it_is_not_passed_on_where_no_key_is_asked_for() {
    let mut rig = Rig::new();
    rig.app_sends(request("k1"));
    rig.connected();
    let sent = rig.up_text(1);
    assert!(!sent.contains("teadfast") && sent.contains("X-API-Key: k1\r\n"), "{sent}");
}
