//! A program in which nobody listens to spans; by itself, since listeners count for a whole process.

use steadfast_observe::spans;
use steadfast_tokio::Request;

#[test]
fn nobody_listens_and_nothing_observes() {
    let request = Request::post("http://localhost/v1/chat/completions").build().expect("a valid request");
    assert!(spans(&request).is_none());
}
