//! Text to validated values: a file that parses can be run.
//!
//! | where | what |
//! |---|---|
//! | `node` | one value of the file with its path, and the keys of a table |
//! | `data` | bytes, and the fragments that a file names |
//! | `steps` | the server's side |
//! | `scenario` | the caller's side, and what is expected |

mod data;
mod node;
mod scenario;
mod steps;

use node::Fields;
pub(crate) use node::nearest;

use crate::scenario::Scenario;
use crate::script::Script;

/// A scenario file that cannot be run
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scenario {scenario}: {field}: {problem}")]
pub struct ParseError {
    /// The scenario's name, or `?` where the file does not get as far as stating one
    pub scenario: String,
    /// Where in the file, such as `connection[0].steps[2].pause`; `file` for the whole of it
    pub field: String,
    /// What is wrong there
    pub problem: Problem,
}

/// What is wrong with a field
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML
    #[error("not TOML: {0}")]
    Syntax(String),
    /// It must be there
    #[error("is missing")]
    Missing,
    /// There is no such field
    #[error("is not known; did you mean `{nearest}`?")]
    Unknown {
        /// The known name that is most like it
        nearest: String,
    },
    /// It has the wrong type
    #[error("must be {0}")]
    Type(&'static str),
    /// It has the right type and makes no sense
    #[error("{0}")]
    Invalid(String),
}

/// What is wrong and where: a [`ParseError`] that does not know its scenario yet
struct Fault {
    field: String,
    problem: Problem,
}

pub(crate) fn scenario(text: &str) -> Result<Scenario, ParseError> {
    let table = table(text)?;
    let name = name(&table);
    scenario::scenario(Fields::new(table)).map_err(|fault| fault.of(name))
}

pub(crate) fn script(text: &str) -> Result<Script, ParseError> {
    let table = table(text)?;
    if ["call", "expect", "seen"].iter().any(|side| table.contains_key(*side)) {
        return Ok(scenario(text)?.script);
    }
    let name = name(&table);
    let mut fields = Fields::new(table);
    steps::script(&mut fields)
        .and_then(|script| fields.finish().map(|()| script))
        .map_err(|fault| fault.of(name))
}

fn table(text: &str) -> Result<toml::Table, ParseError> {
    text.parse::<toml::Table>().map_err(|error| ParseError {
        scenario: "?".to_owned(),
        field: "file".to_owned(),
        problem: Problem::Syntax(error.to_string().trim_end().to_owned()),
    })
}

fn name(table: &toml::Table) -> String {
    table.get("name").and_then(toml::Value::as_str).unwrap_or("?").to_owned()
}

impl Fault {
    fn of(self, scenario: String) -> ParseError {
        ParseError { scenario, field: self.field, problem: self.problem }
    }
}
