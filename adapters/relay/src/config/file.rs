//! The file of a configuration, table by table.

use std::str::FromStr;

use steadfast::config::nearest;
use toml::de::{DeTable, DeValue};

use super::limit::{bound, parsed};
use super::{
    AppTls, Config, ConfigError, ConfigErrorReason, Limit, Recording, RouteLimits, Setting, Source, Upstream,
    known_url, shape_named, shape_of, twice,
};
use crate::keys::{KeyHash, Keys};
use crate::record::{Database, RecordSettings};

/// The settings outside of all tables, and the tables
const TOP: [&str; 12] = [
    "listen",
    "max_connections",
    "max_app_connections",
    "drain",
    "share_port",
    "without_keys",
    "limits",
    "retries",
    "upstream",
    "recording",
    "tls",
    "keys",
];

/// The settings and the tables of an upstream
const UPSTREAM: [&str; 5] = ["url", "shape", "key_env", "limits", "retries"];

/// Reads a file
pub(super) fn read(text: &str) -> Result<Config, ConfigError> {
    let lines = Lines(text);
    let root = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        ConfigError::at(lines.of(offset), ConfigErrorReason::Syntax(error.message().to_owned()))
    })?;
    let entries = entries(root.get_ref(), "", lines);
    let mut config = Config::default();
    // What holds for all upstreams comes first, wherever it stands.
    for entry in &entries {
        if matches!(entry.name, "limits" | "retries") {
            config.limits = limits(entry, config.limits)?;
        }
    }
    for entry in &entries {
        match entry.name {
            "listen" => {
                const TAKES: &str = "an address and a port, as in \"127.0.0.1:7071\"";
                config.listen = entry.setting(entry.string(TAKES)?.parse().ok(), TAKES)?;
            }
            "max_connections" => config.max_connections = cap(entry)?,
            "max_app_connections" => config.max_app_connections = cap(entry)?,
            "drain" => {
                config.drain = entry.setting(bound(&entry.scalar()?), Limit::Total.takes())?;
            }
            "share_port" => config.share_port = entry.setting(entry.value.as_bool(), "true or false")?,
            "without_keys" => config.without_keys = entry.setting(entry.value.as_bool(), "true or false")?,
            "keys" => config.keys = keys(entry)?,
            "recording" => config.recording = Some(recording(entry)?),
            "tls" => config.tls = Some(tls(entry)?),
            "upstream" => {
                for named in entry.table()? {
                    config.upstreams.push(upstream(&named, &config.limits)?);
                }
            }
            "limits" | "retries" => {}
            _ => return Err(entry.unknown(TOP)),
        }
    }
    if config.max_app_connections.source == Source::BuiltIn {
        config.max_app_connections.value = twice(config.max_connections.value);
    }
    Ok(config)
}

/// How many of something may be open
fn cap(entry: &Entry<'_>) -> Result<Setting<Option<usize>>, ConfigError> {
    let most = entry.scalar()?;
    let most = if most == "inf" { Some(None) } else { parsed(&most).filter(|most| *most > 0).map(Some) };
    entry.setting(most, "a whole number from 1, or inf for no cap")
}

fn upstream(named: &Entry<'_>, defaults: &RouteLimits) -> Result<Upstream, ConfigError> {
    let name = named.name.to_owned();
    let mut url = known_url(&name).map(|url| Setting::built_in(url.to_owned()));
    let mut upstream = Upstream {
        shape: shape_of(&name),
        name,
        url: Setting::built_in(String::new()),
        key_env: None,
        limits: defaults.clone(),
        line: Some(named.line),
    };
    for entry in named.table()? {
        match entry.name {
            // What it holds may be a mistake with a password in it, so it is not repeated.
            "url" => url = Some(Setting { value: entry.string("a URL")?.to_owned(), source: entry.source() }),
            "shape" => {
                const TAKES: &str = "\"openai\", \"anthropic\" or \"gemini\"";
                upstream.shape = entry.setting(shape_named(entry.string(TAKES)?), TAKES)?.value;
            }
            "key_env" => {
                const TAKES: &str = "the name of an environment variable, not the key itself";
                let variable = entry.string(TAKES)?;
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                if variable.is_empty() || !variable.bytes().all(is_name) {
                    return Err(entry.takes(TAKES));
                }
                upstream.key_env = Some(variable.to_owned());
            }
            "limits" | "retries" => upstream.limits = limits(&entry, upstream.limits)?,
            _ => return Err(entry.unknown(UPSTREAM)),
        }
    }
    match url {
        Some(url) => Ok(Upstream { url, ..upstream }),
        None => Err(ConfigError::at(named.line, ConfigErrorReason::NoUrl(upstream.name))),
    }
}

/// The limits with what a table `limits` or `retries` says
fn limits(table: &Entry<'_>, mut limits: RouteLimits) -> Result<RouteLimits, ConfigError> {
    let known = || Limit::ALL.into_iter().filter(|limit| limit.table() == table.name);
    for entry in table.table()? {
        let Some(limit) = known().find(|limit| limit.name() == entry.name) else {
            return Err(entry.unknown(known().map(Limit::name)));
        };
        let text = entry.scalar()?;
        limits.set(limit, &text, entry.source()).ok_or_else(|| entry.cannot_be(&text, limit.takes()))?;
    }
    Ok(limits)
}

/// What a table `recording` can say
const RECORDING: [&str; 7] = [
    "database",
    "max_age",
    "max_bytes",
    "max_queued_bytes",
    "max_request_bytes",
    "max_answer_first_bytes",
    "max_answer_last_bytes",
];

fn recording(table: &Entry<'_>) -> Result<Recording, ConfigError> {
    const SIZE: &str = "a whole number of bytes from 0";
    const AGE: &str = "seconds over 0 and up to 1e9";
    let (mut database, mut settings) = (None, RecordSettings::default());
    for entry in table.table()? {
        match entry.name {
            "database" => {
                // A URL may have a password in it, so it is not repeated.
                const TAKES: &str = "the name of a file, or postgres://user@host/name";
                let refused = |error| ConfigError::at(entry.line, ConfigErrorReason::Database(error));
                let parsed =
                    Database::parse(entry.string(TAKES)?).map_err(|error| refused(error.to_string()))?;
                database = Some(Setting { value: parsed, source: entry.source() });
            }
            "max_age" => {
                let age = bound(&entry.scalar()?).and_then(|age| age.limit());
                settings.max_age = entry.setting(age, AGE)?.value;
            }
            "max_bytes" => settings.max_bytes = entry.parsed(SIZE)?,
            "max_queued_bytes" => settings.max_queued_bytes = entry.parsed(SIZE)?,
            "max_request_bytes" => settings.caps.request = entry.parsed(SIZE)?,
            "max_answer_first_bytes" => settings.caps.answer_first = entry.parsed(SIZE)?,
            "max_answer_last_bytes" => settings.caps.answer_last = entry.parsed(SIZE)?,
            _ => return Err(entry.unknown(RECORDING)),
        }
    }
    match database {
        Some(database) => Ok(Recording { database, settings }),
        None => Err(ConfigError::at(table.line, ConfigErrorReason::NoDatabase)),
    }
}

/// The settings of TLS towards apps
const TLS: [&str; 2] = ["certificate", "key"];

fn tls(table: &Entry<'_>) -> Result<AppTls, ConfigError> {
    let (mut certificate, mut key) = (None, None);
    for entry in table.table()? {
        // A key that was written here by mistake is not repeated.
        const TAKES: &str = "the name of a PEM file, not what is in it";
        let file = match entry.name {
            "certificate" => &mut certificate,
            "key" => &mut key,
            _ => return Err(entry.unknown(TLS)),
        };
        let name = entry.string(TAKES)?;
        if name.is_empty() || name.contains("-----BEGIN") {
            return Err(entry.takes(TAKES));
        }
        *file = Some(Setting { value: name.into(), source: entry.source() });
    }
    let missing = |name| ConfigError::at(table.line, ConfigErrorReason::NoTlsFile(name));
    Ok(AppTls {
        certificate: certificate.ok_or_else(|| missing("certificate"))?,
        key: key.ok_or_else(|| missing("key"))?,
    })
}

fn keys(table: &Entry<'_>) -> Result<Keys, ConfigError> {
    let mut keys = Keys::default();
    for entry in table.table()? {
        // It may be the key itself, so it is not repeated.
        const TAKES: &str =
            "the hash of a key, as `steadfast serve --hash-key` prints it, not the key itself";
        let hash: KeyHash = entry.string(TAKES)?.parse().map_err(|_| entry.takes(TAKES))?;
        keys.add(entry.name, hash).map_err(|taken| {
            ConfigError::at(entry.line, ConfigErrorReason::SameKey(taken.to_string(), entry.name.to_owned()))
        })?;
    }
    Ok(keys)
}

/// A line of the file that gives a name something
struct Entry<'a> {
    /// The table that it is in, by its whole name; empty outside of all
    table: &'a str,
    name: &'a str,
    line: usize,
    value: &'a DeValue<'a>,
    lines: Lines<'a>,
    /// Its name, with its table
    key: String,
}

/// The text that spans are counted in
#[derive(Clone, Copy)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    /// The line that a byte lies in, from 1
    fn of(self, offset: usize) -> usize {
        self.0.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// What is in a table, in the order of the file
fn entries<'a>(table: &'a DeTable<'a>, name: &'a str, lines: Lines<'a>) -> Vec<Entry<'a>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&'a toml::Spanned<_>, &'a toml::Spanned<DeValue<'a>>)| {
        let key: &toml::Spanned<std::borrow::Cow<'a, str>> = key;
        let whole =
            if name.is_empty() { key.get_ref().to_string() } else { format!("{name}.{}", key.get_ref()) };
        Entry {
            table: name,
            name: key.get_ref(),
            line: lines.of(key.span().start),
            value: value.get_ref(),
            lines,
            key: whole,
        }
    };
    entries.into_iter().map(entry).collect()
}

impl Entry<'_> {
    /// What is in it
    ///
    /// Errors: it is no table.
    fn table(&self) -> Result<Vec<Entry<'_>>, ConfigError> {
        match self.value.as_table() {
            Some(table) => Ok(entries(table, &self.key, self.lines)),
            None => Err(ConfigError::at(self.line, ConfigErrorReason::NotATable(self.key.clone()))),
        }
    }

    /// A text that may be secret
    fn string(&self, takes: &'static str) -> Result<&str, ConfigError> {
        self.value.as_str().ok_or_else(|| self.takes(takes))
    }

    /// A number, a truth value, or a text in their place, as it is written
    fn scalar(&self) -> Result<String, ConfigError> {
        match self.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            // One too large for any setting is refused by it, as it was written.
            DeValue::Integer(number) => Ok(i128::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| number.to_string(), |number| number.to_string())),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(value) => Ok(value.to_string()),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                Err(self.takes("one value: a number, a text, or true or false"))
            }
        }
    }

    /// A value that was read from it
    ///
    /// Errors: there is none.
    fn setting<T>(&self, value: Option<T>, takes: &'static str) -> Result<Setting<T>, ConfigError> {
        match value {
            Some(value) => Ok(Setting { value, source: self.source() }),
            None => Err(self.cannot_be(&self.scalar()?, takes)),
        }
    }

    /// A number
    ///
    /// Errors: it is none, or not of this kind.
    fn parsed<T: FromStr>(&self, takes: &'static str) -> Result<T, ConfigError> {
        Ok(self.setting(parsed(&self.scalar()?), takes)?.value)
    }

    fn source(&self) -> Source {
        Source::File { table: self.table.to_owned(), line: self.line }
    }

    fn cannot_be(&self, value: &str, takes: &'static str) -> ConfigError {
        let value = format!("{:?}", value.chars().take(MAX_VALUE_CHARS).collect::<String>());
        let value = if matches!(self.value, DeValue::String(_)) { value } else { value.replace('"', "") };
        ConfigError::at(self.line, ConfigErrorReason::Value { key: self.key.clone(), value, takes })
    }

    fn takes(&self, takes: &'static str) -> ConfigError {
        ConfigError::at(self.line, ConfigErrorReason::Takes { key: self.key.clone(), takes })
    }

    fn unknown(&self, known: impl IntoIterator<Item = &'static str>) -> ConfigError {
        let near = nearest(self.name, known);
        let nearest = if self.table.is_empty() { near.to_owned() } else { format!("{}.{near}", self.table) };
        ConfigError::at(self.line, ConfigErrorReason::UnknownKey { key: self.key.clone(), nearest })
    }
}

/// How much of a value that is refused is repeated
const MAX_VALUE_CHARS: usize = 64;
