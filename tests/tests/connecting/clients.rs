//! The clients, and what a test asks of each.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use steadfast::call::Request;
use steadfast::config::Overrides;
use steadfast::connect::Proxies;
use steadfast::outcome::Outcome;
use steadfast::retry::RetryBudgetSettings;
use steadfast_tls::TlsConfig;

/// No wait of these tests is meant to take so long
pub(crate) const CAP: Duration = Duration::from_secs(60);

/// What a test sets up in a client
#[derive(Clone, Default)]
pub(crate) struct Setup {
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) proxies: Proxies,
    pub(crate) unix_socket: Option<PathBuf>,
    pub(crate) budget: Option<RetryBudgetSettings>,
}

/// Makes calls one after the other, all with one client
type Calls = fn(&Setup, Vec<Request>) -> Vec<Outcome>;

/// Every client there is
pub(crate) const CLIENTS: [(&str, Calls); 3] =
    [("tokio", on_tokio), ("smol", on_smol), ("blocking", on_blocking)];

/// A call without a dialect, and its one attempt
pub(crate) fn request(url: &str, overrides: Overrides) -> Request {
    Request::post(url).body("{}").overrides(overrides.max_attempts(1)).build().expect("a valid request")
}

fn on_tokio(setup: &Setup, requests: Vec<Request>) -> Vec<Outcome> {
    let mut client = steadfast_tokio::Client::new().with_proxies(setup.proxies.clone());
    if let Some(tls) = &setup.tls {
        client = client.with_tls(tls.clone());
    }
    if let Some(budget) = setup.budget {
        client = client.with_retry_budget(budget);
    }
    #[cfg(unix)]
    if let Some(path) = &setup.unix_socket {
        client = client.with_unix_socket(path);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut outcomes = Vec::new();
        for request in requests {
            outcomes.push(tokio::time::timeout(CAP, client.send(request)).await.expect("an end in time"));
        }
        outcomes
    })
}

fn on_smol(setup: &Setup, requests: Vec<Request>) -> Vec<Outcome> {
    let mut client = steadfast_smol::Client::new().with_proxies(setup.proxies.clone());
    if let Some(tls) = &setup.tls {
        client = client.with_tls(tls.clone());
    }
    if let Some(budget) = setup.budget {
        client = client.with_retry_budget(budget);
    }
    #[cfg(unix)]
    if let Some(path) = &setup.unix_socket {
        client = client.with_unix_socket(path);
    }
    let too_late = async {
        smol::Timer::after(CAP).await;
        panic!("no end in time")
    };
    smol::block_on(smol::future::or(too_late, sequence(requests, |request| client.send(request))))
}

async fn sequence<F: Future<Output = Outcome>>(
    requests: Vec<Request>,
    send: impl Fn(Request) -> F,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for request in requests {
        outcomes.push(send(request).await);
    }
    outcomes
}

fn on_blocking(setup: &Setup, requests: Vec<Request>) -> Vec<Outcome> {
    let mut client = steadfast_blocking::Client::new().with_proxies(setup.proxies.clone());
    if let Some(tls) = &setup.tls {
        client = client.with_tls(tls.clone());
    }
    if let Some(budget) = setup.budget {
        client = client.with_retry_budget(budget);
    }
    #[cfg(unix)]
    if let Some(path) = &setup.unix_socket {
        client = client.with_unix_socket(path);
    }
    let deadline = Overrides::new().total_deadline(CAP.as_secs_f64());
    let client = client.with_config(&deadline).expect("a valid override");
    requests.into_iter().map(|request| client.send(request)).collect()
}
