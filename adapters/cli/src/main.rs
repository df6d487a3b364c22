//! The program `steadfast`: LLM calls that end, from the command line.
//!
//! | file | subject |
//! |---|---|
//! | `args` | the command line |
//! | `usage`, `failure` | why a command cannot begin, or cannot do its work |
//! | `exit` | the exit codes |
//! | `call` | `steadfast call` |
//! | `provider` | the table of providers, and their request bodies |
//! | `request` | whom a command line asks, and the request that it makes |
//! | `embedded` | the provider that answers when nothing is configured |
//! | `progress`, `live` | the live line: what it says, and how it is drawn |
//! | `decode` | `steadfast decode` |
//! | `demo` | `steadfast demo` |
//! | `mock` | `steadfast mock` |
//! | `record`, `replay` | `call --record` and `steadfast replay` |
//! | `output`, `message` | what goes to stdout, and to stderr |
//! | `interrupt` | Ctrl-C |

mod args;
mod call;
mod decode;
mod demo;
mod embedded;
mod exit;
mod failure;
mod interrupt;
mod live;
mod message;
mod mock;
mod output;
mod progress;
mod provider;
mod record;
mod replay;
mod request;
mod usage;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use exit::Exit;
use failure::Failure;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let done = match &command {
        Command::Call(args) => call::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Mock(args) => mock::run(args),
        Command::Replay(args) => replay::run(args),
    };
    match done {
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
