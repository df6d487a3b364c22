//! What a file, the command line and the environment make of the relay.

use std::path::Path;

use steadfast_relay::{
    AppTls, Config, ConfigError, Routes, Setting, Source, TlsServerConfig, TlsServerConfigError,
};

use crate::args::ServeArgs;
use crate::embedded::Embedded;
use crate::failure::Failure;
use crate::settings::{read_bytes, read_text};
use crate::usage::UsageError;

/// What the embedded provider answers
const EMBEDDED_ANSWER: &str = "Hello! This answer came through the relay from the provider that is embedded \
    in steadfast: a script, not a model. Name providers by --upstream, or in a file by --config, and their \
    models will answer in its place.";

/// What the embedded provider is called where a source is named
const EMBEDDED: &str = "embedded";

/// Where answers come from
pub(super) enum Provided {
    /// From providers that are configured
    Configured,
    /// From the embedded provider, since nothing is configured
    Embedded(Embedded),
}

impl Provided {
    /// The embedded provider where the command line names neither a file nor an upstream
    ///
    /// Errors: the system refuses a socket or a thread.
    pub(super) fn for_(args: &ServeArgs) -> Result<Self, Failure> {
        if args.config.is_none() && args.upstream.is_empty() {
            return Ok(Self::Embedded(Embedded::start(EMBEDDED_ANSWER)?));
        }
        Ok(Self::Configured)
    }
}

/// A configuration, and the routes that it makes
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) routes: Routes,
    /// How apps speak TLS, where they do
    pub(super) tls: Option<TlsServerConfig>,
    /// The settings that say something else than what is in force, and have to wait for the next start
    pub(super) next_start: Vec<&'static str>,
}

impl Plan {
    /// Reads all there is; where a relay listens already, for that address
    ///
    /// Errors: a file that cannot be read, a certificate that cannot be shown, or anything in it or on the command line that cannot be.
    pub(super) fn make(
        args: &ServeArgs,
        provided: &Provided,
        in_force: Option<&Config>,
    ) -> Result<Self, UsageError> {
        let path = args.config.as_deref();
        let refused = |error| UsageError::Relay { path: path.map(|path| path.display().to_string()), error };
        let mut config = match path {
            Some(path) => Config::from_toml(&read_text(path)?).map_err(refused)?,
            None => Config::default(),
        };
        if let Some(value) = args.listen {
            config.listen = Setting { value, source: Source::Option("--listen") };
        }
        if args.share_port {
            config.share_port = Setting { value: true, source: Source::Option("--share-port") };
        }
        if args.without_keys {
            config.without_keys = Setting { value: true, source: Source::Option("--without-keys") };
        }
        if let (Some(certificate), Some(key)) = (&args.tls_certificate, &args.tls_key) {
            config.tls = Some(AppTls {
                certificate: Setting {
                    value: certificate.clone(),
                    source: Source::Option("--tls-certificate"),
                },
                key: Setting { value: key.clone(), source: Source::Option("--tls-key") },
            });
        }
        let of_command_line = |error: ConfigError| UsageError::Relay { path: None, error };
        for upstream in &args.upstream {
            config.upstream(upstream, "--upstream").map_err(of_command_line)?;
        }
        if let Provided::Embedded(embedded) = provided {
            for name in ["openai", "anthropic", "gemini"] {
                let upstream = format!("{name}={}", embedded.base_url());
                config.upstream(&upstream, EMBEDDED).map_err(of_command_line)?;
            }
        }
        let mut next_start = Vec::new();
        if let Some(in_force) = in_force {
            // What listens goes on listening: whom it may let in is judged by where it does.
            next_start.extend((config.listen.value != in_force.listen.value).then_some("listen"));
            next_start.extend((config.share_port.value != in_force.share_port.value).then_some("share_port"));
            next_start.extend((config.recording != in_force.recording).then_some("recording"));
            if config.tls.is_some() != in_force.tls.is_some() {
                next_start.push("tls");
                config.tls = in_force.tls.clone();
            }
            config.listen = in_force.listen.clone();
            config.share_port = in_force.share_port.clone();
            config.recording = in_force.recording.clone();
        }
        let routes = config.routes(|variable| std::env::var(variable).ok()).map_err(refused)?;
        let tls = config.tls.as_ref().map(load).transpose()?;
        Ok(Self { config, routes, tls, next_start })
    }
}

/// Reads a certificate and its key
fn load(files: &AppTls) -> Result<TlsServerConfig, UsageError> {
    let AppTls { certificate, key } = files;
    let chain = read_bytes(&certificate.value)?;
    TlsServerConfig::new(&chain, &read_bytes(&key.value)?).map_err(|error| {
        let path = |path: &Path| path.display().to_string();
        let path = match error {
            TlsServerConfigError::Key(_) => path(&key.value),
            TlsServerConfigError::Certificate(_) => path(&certificate.value),
            TlsServerConfigError::Pair(_) => format!("{}, {}", path(&certificate.value), path(&key.value)),
        };
        UsageError::AppTls { path, error }
    })
}
