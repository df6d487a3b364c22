//! The program `steadfast`: LLM calls that end, from the command line.
//!
//! | file | subject |
//! |---|---|
//! | `args` | the command line |
//! | `usage` | what makes a command line or the environment unusable |
//! | `exit` | the exit codes |
//! | `provider` | the table of providers, and their request bodies |
//! | `base_url` | where an API is |
//! | `request` | the request that a command line asks for |
//! | `progress`, `live` | the live line: what it says, and how it is drawn |

#![expect(dead_code, reason = "the commands that use the rest are still to come")]

mod args;
mod base_url;
mod exit;
mod live;
mod progress;
mod provider;
mod request;
mod usage;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use steadfast::config::RequestConfig;

use args::{Cli, Command};
use exit::Exit;
use request::Request;
use usage::UsageError;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            let mut cli = Cli::command();
            cli.build();
            // All that can be unusable beyond clap's own checks belongs to this command.
            let command = cli.find_subcommand_mut("call").expect("it is declared");
            command.error(ErrorKind::ValueValidation, error).exit()
        }
    }
}

fn run(command: Command) -> Result<Exit, UsageError> {
    if let Command::Call(args) = &command {
        RequestConfig::default().with(&args.overrides()?)?;
        Request::choose(args, |name| std::env::var(name).ok())?;
    }
    eprintln!("steadfast: this command is not built yet");
    Ok(Exit::Failed)
}
