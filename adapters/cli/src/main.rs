//! The program `steadfast`: LLM calls that end, from the command line.
//!
//! | file | subject |
//! |---|---|
//! | `args`, `help` | the command line, and what its help says |
//! | `settings` | the settings in force: a file, the environment, the command line |
//! | `usage`, `failure` | why a command cannot begin, or cannot do its work |
//! | `exit` | the exit codes |
//! | `call` | `steadfast call` |
//! | `calls` | `steadfast calls` |
//! | `connect` | how calls connect: a Unix socket, TCP's own settings |
//! | `provider` | the table of providers, and their request bodies |
//! | `request` | whom a command line asks, and the request that it makes |
//! | `embedded` | the provider that answers when nothing is configured |
//! | `progress`, `live` | the live line: what it says, and how it is drawn |
//! | `decode` | `steadfast decode` |
//! | `demo` | `steadfast demo` |
//! | `gaps` | `steadfast gaps` |
//! | `mock` | `steadfast mock` |
//! | `config` | `steadfast config` |
//! | `input` | what comes from stdin, or from a file |
//! | `serve` | `steadfast serve` |
//! | `sim`, `plant` | `steadfast sim`, and its `--plant` |
//! | `record`, `replay` | `call --record` and `steadfast replay` |
//! | `output`, `message` | what goes to stdout, and to stderr |
//! | `interrupt` | Ctrl-C |

mod args;
mod call;
mod calls;
mod config;
mod connect;
mod decode;
mod demo;
mod embedded;
mod exit;
mod failure;
mod gaps;
mod help;
mod input;
mod interrupt;
mod live;
mod message;
mod mock;
mod output;
mod plant;
mod progress;
mod provider;
mod record;
mod replay;
mod request;
mod serve;
mod settings;
mod sim;
mod usage;

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use exit::Exit;
use failure::Failure;

fn main() -> ExitCode {
    let Cli { config_file, command } = Cli::parse();
    match run(config_file.as_deref(), &command) {
        Ok(exit) => exit.into(),
        Err(Failure::Usage(error)) => {
            let mut cli = Cli::command();
            cli.build();
            let command = cli.find_subcommand_mut(command.name()).expect("it was parsed");
            command.error(ErrorKind::ValueValidation, error).exit()
        }
        Err(failure) => {
            message::say(failure);
            Exit::Failed.into()
        }
    }
}

fn run(config_file: Option<&Path>, command: &Command) -> Result<Exit, Failure> {
    let config_file = settings::config_file(config_file);
    settings::take_effect(config_file.as_deref(), std::env::vars_os())?;
    match command {
        Command::Call(args) => call::run(args),
        Command::Calls(args) => calls::run(args),
        Command::Config(args) => config::run(args, config_file.as_deref()),
        Command::Decode(args) => decode::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Gaps(args) => gaps::run(args),
        Command::Mock(args) => mock::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Sim(args) => sim::run(args),
    }
}
