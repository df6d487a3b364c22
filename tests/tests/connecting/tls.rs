//! Certificates that are not accepted: typed, told at once, and with nothing sent.

use std::sync::Arc;

use rcgen::date_time_ymd;
use rustls::ServerConfig;
use steadfast::config::Overrides;
use steadfast::machine::{CertificateFault, ClientCertificateFault, FailureKind, IoFailure, Stage};
use steadfast::outcome::{Billing, ErrorKind, Outcome};
use steadfast_tls::TlsConfig;

use crate::certificates::{Authority, Identity};
use crate::clients::{CLIENTS, Setup, request};
use crate::server::{Server, answer_secure};

const HOST: &str = "127.0.0.1";

/// One call by each client to a server of that kind, which gets one connection for each
fn outcomes(tls: &TlsConfig, serving: &Arc<ServerConfig>) -> Vec<(&'static str, Outcome, bool)> {
    let calls = CLIENTS.iter().map(|(name, calls)| {
        let server = Server::start(1, {
            let serving = Arc::clone(serving);
            move |socket| answer_secure(socket, Arc::clone(&serving))
        });
        let url = format!("https://{HOST}:{}", server.port());
        let setup = Setup { tls: Some(tls.clone()), ..Setup::default() };
        // A failure that is tried again would never end: the server takes one connection.
        let mut outcomes = calls(&setup, vec![request(&url, Overrides::new())]);
        (*name, outcomes.remove(0), server.join()[0])
    });
    calls.collect()
}

fn failure(outcome: &Outcome) -> &IoFailure {
    match outcome.result.as_ref().map_err(|error| &error.kind) {
        Err(ErrorKind::Transport(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_that_is_not_accepted_says_why_by_its_type() {
    let authority = Authority::new("Our Authority");
    let stranger = Authority::new("A Stranger");
    let times = |from, to| {
        authority.issue_with(HOST, move |params| {
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
        })
    };
    for (identity, fault) in [
        (times(2020, 2021), CertificateFault::Expired),
        (times(4000, 4001), CertificateFault::NotYetValid),
        (authority.issue("api.example.com"), CertificateFault::WrongHost),
        (stranger.issue(HOST), CertificateFault::UnknownIssuer),
        (Identity::self_signed(HOST), CertificateFault::SelfSigned),
    ] {
        for (name, outcome, answered) in outcomes(&authority.trusted(), &identity.serving()) {
            let failure = failure(&outcome);
            let kind = FailureKind::Certificate(fault);
            assert_eq!((failure.stage, failure.kind), (Stage::Tls, kind), "{name}: {failure}");
            assert!(failure.message.starts_with("TLS with 127.0.0.1: the certificate "), "{failure}");
            let billing = outcome.result.as_ref().map_err(|error| error.billing).expect_err("a failure");
            assert_eq!((billing, answered), (Billing::NotSent, false), "{name}");
        }
    }
}

#[test]
fn a_server_that_wants_a_certificate_of_ours_says_so_by_its_type() {
    let authority = Authority::new("Our Authority");
    let clients = Authority::new("The Clients' Authority");
    let ours = clients.issue("client.example.com");
    let other = authority.issue("client.example.com");
    let identity = authority.issue(HOST);
    for version in rustls::ALL_VERSIONS {
        let serving = identity.serving_only(version, &clients);
        for (tls, fault) in [
            (authority.trusted(), ClientCertificateFault::Required),
            (other.shown_by(authority.trusted()), ClientCertificateFault::Refused),
        ] {
            for (name, outcome, answered) in outcomes(&tls, &serving) {
                let failure = failure(&outcome);
                assert_eq!(failure.kind, FailureKind::ClientCertificate(fault), "{name}: {failure}");
                assert!(!answered, "{name}");
            }
        }
        for (name, outcome, answered) in outcomes(&ours.shown_by(authority.trusted()), &serving) {
            assert!(outcome.result.is_ok() && answered, "{name}: {:?}", outcome.result);
        }
    }
}
