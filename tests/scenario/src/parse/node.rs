//! One value of the file with its path, and the keys of a table.

use std::time::Duration;

use toml::{Table, Value};

use super::{Fault, Problem};

/// No wait of a scenario is longer, in seconds
const LONGEST: f64 = 3600.0;

/// A value, and where it stands
pub(super) struct Node {
    pub(super) path: String,
    pub(super) value: Value,
}

impl Node {
    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault { field: self.path.clone(), problem }
    }

    pub(super) fn invalid(&self, what: impl Into<String>) -> Fault {
        self.fault(Problem::Invalid(what.into()))
    }

    pub(super) fn string(self) -> Result<String, Fault> {
        let Value::String(string) = self.value else {
            return Err(self.fault(Problem::Type("a string")));
        };
        Ok(string)
    }

    pub(super) fn boolean(self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.fault(Problem::Type("true or false")))
    }

    pub(super) fn list(self) -> Result<Vec<Node>, Fault> {
        let Value::Array(items) = self.value else {
            return Err(self.fault(Problem::Type("a list")));
        };
        let node = |(at, value)| Node { path: format!("{}[{at}]", self.path), value };
        Ok(items.into_iter().enumerate().map(node).collect())
    }

    pub(super) fn strings(self) -> Result<Vec<String>, Fault> {
        self.list()?.into_iter().map(Node::string).collect()
    }

    pub(super) fn fields(self) -> Result<Fields, Fault> {
        let Value::Table(table) = self.value else {
            return Err(self.fault(Problem::Type("a table")));
        };
        Ok(Fields { path: self.path, table, known: Vec::new() })
    }

    /// A number, which may be infinite
    pub(super) fn number(&self) -> Result<f64, Fault> {
        if let Some(integer) = self.value.as_integer() {
            let small =
                i32::try_from(integer).map_err(|_| self.invalid(format!("{integer} is too large")))?;
            return Ok(f64::from(small));
        }
        let infinite = (self.value.as_str() == Some("inf")).then_some(f64::INFINITY);
        let number = self.value.as_float().or(infinite);
        number.ok_or_else(|| self.fault(Problem::Type("a number or \"inf\"")))
    }

    /// A span of time in seconds, which may be zero
    pub(super) fn seconds(self) -> Result<Duration, Fault> {
        let seconds = self.number()?;
        if !(0.0..=LONGEST).contains(&seconds) {
            return Err(self.invalid(format!("{seconds} is not between 0 and {LONGEST} seconds")));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    /// A whole number that is not negative
    pub(super) fn count(self) -> Result<u32, Fault> {
        let integer = self.value.as_integer().ok_or_else(|| self.fault(Problem::Type("a whole number")))?;
        u32::try_from(integer).map_err(|_| self.invalid(format!("{integer} is out of range")))
    }

    /// A whole number from 1
    pub(super) fn positive(self) -> Result<u32, Fault> {
        let path = self.path.clone();
        match self.count()? {
            0 => Err(Fault { field: path, problem: Problem::Invalid("0 is not at least 1".to_owned()) }),
            count => Ok(count),
        }
    }

    /// One of a few words
    pub(super) fn word<T: Copy>(self, words: &[(&'static str, T)]) -> Result<T, Fault> {
        let path = self.path.clone();
        let word = self.string()?;
        match words.iter().find(|(known, _)| *known == word) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let nearest = nearest(&word, words.iter().map(|(known, _)| *known));
                let problem = Problem::Invalid(format!("`{word}` is not known; did you mean `{nearest}`?"));
                Err(Fault { field: path, problem })
            }
        }
    }
}

/// The keys of a table, taken one by one; what is left at the end is not known
pub(super) struct Fields {
    path: String,
    table: Table,
    known: Vec<&'static str>,
}

impl Fields {
    /// Those of the file itself
    pub(super) fn new(table: Table) -> Self {
        Self { path: String::new(), table, known: Vec::new() }
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        Some(Node { path: join(&self.path, key), value })
    }

    pub(super) fn required(&mut self, key: &'static str) -> Result<Node, Fault> {
        self.take(key).ok_or_else(|| Fault { field: join(&self.path, key), problem: Problem::Missing })
    }

    /// The value of the only key, for a table that is one of several kinds
    pub(super) fn only(mut self, kinds: &[&'static str]) -> Result<(&'static str, Node), Fault> {
        let field = if self.path.is_empty() { "file".to_owned() } else { self.path.clone() };
        self.known.extend(kinds);
        let found = kinds.iter().find_map(|kind| Some((*kind, self.table.remove(*kind)?)));
        let path = self.path.clone();
        self.finish()?;
        match found {
            Some((kind, value)) => Ok((kind, Node { path: join(&path, kind), value })),
            None => Err(Fault { field, problem: Problem::Missing }),
        }
    }

    /// Every key with its value, whatever its name
    pub(super) fn entries(self) -> impl Iterator<Item = (String, Node)> {
        let path = self.path;
        self.table.into_iter().map(move |(key, value)| {
            let node = Node { path: join(&path, &key), value };
            (key, node)
        })
    }

    /// Refuses what was not taken
    pub(super) fn finish(self) -> Result<(), Fault> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) => {
                let nearest = nearest(key, self.known.iter().copied()).to_owned();
                Err(Fault { field: join(&self.path, key), problem: Problem::Unknown { nearest } })
            }
        }
    }
}

/// The known word that is most like `word`; empty where none is known
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| distance(word, known)).unwrap_or("")
}

/// Levenshtein distance in characters
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (at, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
