//! The command line.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use http::{HeaderValue, Method};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::framing::Framing;
use steadfast::trace::Bodies;

use crate::calls::CallsArgs;
use crate::connect::ConnectArgs;
use crate::help::{
    CALL_EXAMPLES, CALLS_EXAMPLES, CONFIG_EXAMPLES, DECODE_EXAMPLES, DEMO_EXAMPLES, GAPS_EXAMPLES,
    MOCK_EXAMPLES, REPLAY_EXAMPLES, SERVE_EXAMPLES, SIM_EXAMPLES, call_long_help, calls_long_help,
    config_long_help, decode_long_help, exit_codes, gaps_long_help, replay_long_help, serve_long_help,
    sim_long_help,
};
use crate::plant::{self, Plant};
use crate::provider::Provider;
use crate::usage::UsageError;

/// LLM calls that end: every wait bounded, every failure typed
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, arg_required_else_help = true, after_help = exit_codes())]
pub(crate) struct Cli {
    /// Read settings from this TOML file, instead of the one that STEADFAST_CONFIG_FILE names
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a prompt to a model and print its answer as it comes
    #[command(after_help = CALL_EXAMPLES, after_long_help = call_long_help())]
    Call(CallArgs),
    /// List the calls that a relay recorded, or show one of them
    #[command(after_help = CALLS_EXAMPLES, after_long_help = calls_long_help())]
    Calls(CallsArgs),
    /// Print the settings in force, and where each came from
    #[command(after_help = CONFIG_EXAMPLES, after_long_help = config_long_help())]
    Config(ConfigArgs),
    /// Print what a recorded response means
    #[command(after_help = DECODE_EXAMPLES, after_long_help = decode_long_help())]
    Decode(DecodeArgs),
    /// Play the failures of real providers on loopback sockets, and check how each call ends
    #[command(after_help = DEMO_EXAMPLES, after_long_help = format!("{DEMO_EXAMPLES}\n{}", exit_codes()))]
    Demo(DemoArgs),
    /// Measure how long providers are silent within a stream
    #[command(after_help = GAPS_EXAMPLES, after_long_help = gaps_long_help())]
    Gaps(GapsArgs),
    /// Serve a scenario's script over HTTP, for any client
    #[command(after_help = MOCK_EXAMPLES, after_long_help = format!("{MOCK_EXAMPLES}\n{}", exit_codes()))]
    Mock(MockArgs),
    /// Relay the calls of any SDK to their providers: bounded, and safely retried
    #[command(after_help = SERVE_EXAMPLES, after_long_help = serve_long_help())]
    Serve(ServeArgs),
    /// Play random calls against random servers in virtual time, and check what must always hold
    #[command(after_help = SIM_EXAMPLES, after_long_help = sim_long_help())]
    Sim(SimArgs),
    /// Replay a recorded call, or see how it would have ended under another configuration
    #[command(after_help = REPLAY_EXAMPLES, after_long_help = replay_long_help())]
    Replay(ReplayArgs),
}

#[derive(Args, Debug, Default)]
pub(crate) struct CallArgs {
    /// What to ask; `-` is stdin, and so is no prompt where stdin is no terminal
    pub(crate) prompt: Option<String>,

    /// Whose API to speak; without it, the first provider whose key is set
    #[arg(long, value_enum)]
    pub(crate) provider: Option<Provider>,

    /// Where the API is, instead of the provider's own address; a key that is set is sent there
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Which model to ask, instead of the provider's default
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Change a setting: seconds, `inf`, or a whole number; can be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Ask for the answer in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Print the outcome as JSON instead of the text
    #[arg(long)]
    pub(crate) json: bool,

    /// Print on stderr what happened when
    #[arg(long)]
    pub(crate) timeline: bool,

    /// Write to a file what the call was told and what it decided, for `replay`; one that is there is overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// How much of the answer the file holds; no mode holds the request or a credential
    #[arg(long, value_name = "whole|hashed|lengths", requires = "record", default_value = "whole")]
    pub(crate) record_bodies: Bodies,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Change a setting, as in `call`; can be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,

    /// Print them as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct DecodeArgs {
    /// The recorded response; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The file is the answer to a call, in that dialect: print how the call ends, and with what
    #[arg(long, group = "what", value_parser = dialects())]
    pub(crate) dialect: Option<Dialect>,

    /// The file is a body in that framing: print its events
    #[arg(long, group = "what", value_parser = framings())]
    pub(crate) framing: Option<Framing>,

    /// Print the HTTP response itself, whatever its body is
    #[arg(long, group = "what", requires = "http")]
    pub(crate) raw: bool,

    /// The file is a whole HTTP/1.1 response, from its status line on, and not only a body
    #[arg(long, conflicts_with = "framing")]
    pub(crate) http: bool,

    /// The method of the request that the response answers
    #[arg(long, value_name = "M", requires = "http", default_value = "POST")]
    pub(crate) method: Method,

    /// The status of the response that the body is of
    #[arg(
        long, value_name = "N", conflicts_with_all = ["framing", "http"],
        default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=999)
    )]
    pub(crate) status: u16,

    /// Its content type, instead of the one that the dialect's streams have
    #[arg(long, value_name = "T", conflicts_with_all = ["framing", "http"])]
    pub(crate) content_type: Option<HeaderValue>,

    /// In what pieces it is read: in one, byte by byte, or in pieces of N bytes
    #[arg(long, value_name = "whole|bytes|N", default_value = "whole")]
    pub(crate) split: Split,

    /// How the server's side of the connection ends, after the file
    #[arg(long, value_enum, conflicts_with_all = ["framing", "raw"], default_value_t = End::Clean)]
    pub(crate) end: End,

    /// The call asked for its answer in one piece, and not for a stream
    #[arg(long, conflicts_with_all = ["framing", "raw"])]
    pub(crate) unary: bool,

    /// Change a setting, as in `call`; can be given more than once [max_attempts is 1 without it]
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["framing", "raw"])]
    pub(crate) config: Vec<String>,
}

/// How the server's side of a connection ends
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    /// The response ends as it should; with --http, the connection ends properly after the file
    Clean,
    /// The connection ends where the file does, without a word that nothing more comes
    Cut,
    /// The connection is reset where the file ends
    Reset,
    /// Nothing more comes, and the connection stays open: the clock runs until the call ends
    Open,
}

/// The most bytes of one read
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split(pub(crate) NonZeroUsize);

impl FromStr for Split {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "whole" => Ok(Self(NonZeroUsize::MAX)),
            "bytes" => Ok(Self(NonZeroUsize::MIN)),
            number => number.parse().map(Self).map_err(|_| "takes whole, bytes, or a number from 1"),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Play only the scenario of that name; can be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// Play them with this driver; can be given more than once, and then a table compares them
    #[arg(long, value_name = "DRIVER", default_value = "tokio")]
    pub(crate) driver: Vec<DemoDriver>,

    /// Print the scenarios' names, and play none
    #[arg(long)]
    pub(crate) list: bool,

    /// Print the results as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who plays the scenarios
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoDriver {
    /// Under virtual time, without sockets: every time is exact
    Sim,
    /// On tokio
    Tokio,
    /// On smol
    Smol,
    /// On threads
    Blocking,
    /// With each of them
    All,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GapsArgs {
    /// Whom to measure; without it, each provider whose key is set
    #[arg(long, value_enum)]
    pub(crate) provider: Option<Provider>,

    /// Measure the server there, instead of the provider's own; a key that is set is sent to it
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Which model to ask, instead of the provider's default
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// What to ask, instead of a sum that takes some thought
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,

    /// How many streams to measure of each, one after the other
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) runs: NonZeroU32,

    /// Change a setting, as in `call`; can be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MockArgs {
    /// The scenario file to serve
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,

    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The file that configures it; SIGHUP has it read again
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Relay /NAME/… to that URL; without one, to openai, anthropic or gemini; can be given more than once
    #[arg(long, value_name = "NAME=URL")]
    pub(crate) upstream: Vec<String>,

    /// Where to listen, instead of where the file says [127.0.0.1:7071 by default]; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// Speak TLS with apps, and show them the certificate in this PEM file; SIGHUP has it read again
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The PEM file with the private key of --tls-certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Let other processes listen on the same port
    #[arg(long)]
    pub(crate) share_port: bool,

    /// Listen on addresses that others can reach even though no keys are configured
    #[arg(long)]
    pub(crate) without_keys: bool,

    /// Print what would be in force, and where each part comes from, and serve nothing
    #[arg(long)]
    pub(crate) check: bool,

    /// Print the hash of the key on stdin, for the file's table of keys, and serve nothing
    #[arg(long, exclusive = true)]
    pub(crate) hash_key: bool,

    /// Print where it listens, or with --check what would be in force, as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    /// How many runs to play, each of up to three calls
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,

    /// The seed of the first run; the others have the numbers after it
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Play the run of this seed alone, and tell what happens in it
    #[arg(long, value_name = "SEED", conflicts_with_all = ["runs", "seed", "tape"])]
    pub(crate) replay: Option<u64>,

    /// Play the run of this tape alone, numbers with commas between, and tell what happens in it
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with_all = ["runs", "seed"])]
    pub(crate) tape: Vec<u32>,

    /// Print a digest of every step: the same on every platform
    #[arg(long)]
    pub(crate) digest: bool,

    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Switch a mistake on, to see it found
    #[arg(long, value_name = "FAULT", value_parser = plant::parse, long_help = plant::long_help())]
    pub(crate) plant: Option<Plant>,
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The trace, as `call --record` writes it; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Show how the same arrivals would have ended under another setting; can be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) what_if: Vec<String>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl Command {
    /// The command's name
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Calls(_) => "calls",
            Self::Config(_) => "config",
            Self::Decode(_) => "decode",
            Self::Demo(_) => "demo",
            Self::Gaps(_) => "gaps",
            Self::Mock(_) => "mock",
            Self::Serve(_) => "serve",
            Self::Sim(_) => "sim",
            Self::Replay(_) => "replay",
        }
    }
}

impl CallArgs {
    /// What `--config` says, in the order given
    pub(crate) fn overrides(&self) -> Result<Overrides, UsageError> {
        with_settings(Overrides::new(), "--config", &self.config)
    }
}

impl GapsArgs {
    /// What `--config` says, in the order given
    pub(crate) fn overrides(&self) -> Result<Overrides, UsageError> {
        with_settings(Overrides::new(), "--config", &self.config)
    }
}

impl ConfigArgs {
    /// What `--config` says, in the order given
    pub(crate) fn overrides(&self) -> Result<Overrides, UsageError> {
        with_settings(Overrides::new(), "--config", &self.config)
    }
}

impl DecodeArgs {
    /// What is in force for a call that makes one attempt, whole, and over it what `--config` says
    pub(crate) fn overrides(&self) -> Result<Overrides, UsageError> {
        let in_force = Overrides::from(RequestConfig::current().config());
        with_settings(in_force.max_attempts(1), "--config", &self.config)
    }
}

impl ReplayArgs {
    /// What `--what-if` says, in the order given
    pub(crate) fn overrides(&self) -> Result<Overrides, UsageError> {
        with_settings(Overrides::new(), "--what-if", &self.what_if)
    }

    /// The file's name, for messages
    pub(crate) fn path(&self) -> String {
        self.file.display().to_string()
    }
}

fn with_settings(
    mut overrides: Overrides,
    flag: &'static str,
    settings: &[String],
) -> Result<Overrides, UsageError> {
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or(UsageError::NotASetting(flag))?;
        overrides.set(name.trim(), value)?;
    }
    Ok(overrides)
}

fn dialects() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::name))
        .map(|name| Dialect::from_name(&name).expect("one of those names"))
}

fn framings() -> impl TypedValueParser<Value = Framing> {
    const FRAMINGS: [(&str, Framing); 3] =
        [("sse", Framing::Sse), ("ndjson", Framing::Ndjson), ("json-array", Framing::JsonArray)];
    PossibleValuesParser::new(FRAMINGS.map(|(name, _)| name)).map(|given| {
        let framing = FRAMINGS.into_iter().find(|(name, _)| *name == given);
        framing.expect("one of those names").1
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;
    use crate::exit::Exit;

    fn call(arguments: &[&str]) -> CallArgs {
        let arguments = ["steadfast", "call"].iter().chain(arguments);
        match Cli::try_parse_from(arguments).unwrap().command {
            Command::Call(call) => call,
            other @ (Command::Calls(_)
            | Command::Config(_)
            | Command::Decode(_)
            | Command::Demo(_)
            | Command::Gaps(_)
            | Command::Mock(_)
            | Command::Replay(_)
            | Command::Serve(_)
            | Command::Sim(_)) => {
                panic!("{other:?}")
            }
        }
    }

    fn refusal(arguments: &[&str]) -> clap::Error {
        Cli::try_parse_from(["steadfast"].iter().chain(arguments)).unwrap_err()
    }

    fn long_help(name: &str) -> String {
        let mut command = Cli::command();
        command.build();
        command.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_of_call_is_read() {
        let args = call(&[
            "--provider",
            "gemini",
            "--base-url",
            "http://h",
            "--model",
            "m",
            "--config",
            "connect_timeout=1.5",
            "--config",
            "max_attempts=2",
            "--config",
            " connect_timeout = inf",
            "--no-stream",
            "--json",
            "--timeline",
            "Hi.",
        ]);
        assert_eq!(args.prompt.as_deref(), Some("Hi."));
        assert_eq!(args.provider, Some(Provider::Gemini));
        assert_eq!(args.base_url.as_deref(), Some("http://h"));
        assert_eq!(args.model.as_deref(), Some("m"));
        assert!(args.no_stream && args.json && args.timeline);
        let expected = Overrides::new().connect_timeout(f64::INFINITY).max_attempts(2);
        assert_eq!(args.overrides().unwrap(), expected);
    }

    #[test]
    fn demo_and_mock_are_read() {
        let parsed =
            Cli::try_parse_from(["steadfast", "demo", "--only", "a", "--only", "b", "--list", "--json"]);
        let Command::Demo(demo) = parsed.unwrap().command else { panic!("not demo") };
        assert_eq!(demo.only, ["a", "b"]);
        assert!(demo.list && demo.json);
        let parsed = Cli::try_parse_from(["steadfast", "mock", "--script", "f.toml"]);
        let Command::Mock(mock) = parsed.unwrap().command else { panic!("not mock") };
        assert_eq!((mock.script, mock.port), (PathBuf::from("f.toml"), 0));
    }

    #[test]
    fn what_cannot_be_read_is_a_usage_error() {
        let cases: [(&[&str], ErrorKind); 5] = [
            (&["call", "--provider", "acme", "Hi."], ErrorKind::InvalidValue),
            (&["call", "--frobnicate", "Hi."], ErrorKind::UnknownArgument),
            (&["mock"], ErrorKind::MissingRequiredArgument),
            (&["mock", "--script", "f", "--port", "65536"], ErrorKind::ValueValidation),
            (&["frobnicate"], ErrorKind::InvalidSubcommand),
        ];
        for (arguments, kind) in cases {
            let error = refusal(arguments);
            assert_eq!((error.kind(), error.exit_code()), (kind, i32::from(Exit::Usage.code())));
        }
    }

    #[test]
    fn a_setting_that_cannot_be_is_refused_in_words() {
        let cases = [
            ("request_timout=3", "there is no setting request_timout; the nearest is request_timeout"),
            ("max_attempts=0", "max_attempts cannot be 0: it takes a whole number from 1"),
            ("sk-secret", "--config takes KEY=VALUE"),
        ];
        for (setting, message) in cases {
            assert_eq!(call(&["--config", setting, "Hi."]).overrides().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn the_long_help_has_examples_settings_and_exit_codes() {
        let help = long_help("call");
        assert!(help.contains("Examples:\n  steadfast call \"Say hello.\"\n"));
        assert!(help.contains("\n  connect_timeout              10  Name look-up, TCP, TLS"), "{help}");
        assert!(help.contains("\n  openai     https://api.openai.com/v1 ["));
        for name in ["call", "calls", "config", "decode", "demo", "gaps", "mock", "replay", "serve", "sim"] {
            let help = long_help(name);
            assert!(help.contains("Examples:\n  steadfast "), "{name}");
            assert!(help.contains("\n  130  cancelled: by Ctrl-C, or"), "{name}: {help}");
        }
    }
}
