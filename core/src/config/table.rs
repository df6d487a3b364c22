//! The table of fields, and the types that follow from it.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::error::nearest;
use super::value::Value;
use super::{ConfigError, Seconds};
use crate::time::Bound;

fields! {
    /// Name look-up, TCP, TLS and proxy set-up, per attempt; also waiting for a pooled connection
    ConnectTimeout connect_timeout: Bound = seconds(10);
    /// A whole unary exchange, or a stream until its first byte, per attempt
    RequestTimeout request_timeout: Bound = seconds(600);
    /// The longest gap between raw byte arrivals of a stream; a Realtime receive
    StreamIdleTimeout stream_idle_timeout: Bound = seconds(120);
    /// All attempts and pauses together; for a stream, until its first byte
    TotalDeadline total_deadline: Bound = seconds(900);
    /// Attempts on the wire; 1 means no retry
    MaxAttempts max_attempts: NonZeroU32 = const { NonZeroU32::new(3).unwrap() };
    /// An MCP connection: spawn, initialize, initialized, discovery
    McpConnectTimeout mcp_connect_timeout: Bound = seconds(120);
    /// One MCP exchange, from the moment it holds the session
    McpRequestTimeout mcp_request_timeout: Bound = seconds(120);
    /// A stream from its start to its last byte, all attempts together
    StreamDeadline stream_deadline: Bound = Bound::Unbounded;
    /// The longest gap between events that extend the answer; pings and comments do not
    ///
    /// It runs from the response's head, or from the first such event where
    /// `first_content_timeout` is set.
    ContentIdleTimeout content_idle_timeout: Bound = Bound::Unbounded;
    /// From the response's head to the first event that extends the answer
    ///
    /// Where set, `stream_idle_timeout` starts with that event.
    FirstContentTimeout first_content_timeout: Bound = Bound::Unbounded;
    /// How long a finished call's connection has to end its message before it is closed, not reused
    ///
    /// A bound of the pool: the call itself is done at the sentinel.
    AfterSentinel after_sentinel: Bound = Bound::Limited(Duration::from_millis(500));
    /// From a completion marker: the wait for trailing usage or the sentinel
    ///
    /// Comments do not extend it, new content starts it afresh, an unfinished choice suspends it.
    /// Zero means not to wait.
    AfterMarker after_marker: Duration = Duration::from_secs(2);
    /// The longest pause a server may ask for; its response is the outcome if it asks for more
    MaxRetryAfter max_retry_after: Bound = Bound::Unbounded;
    /// One run of a local tool in the tool loop
    ToolTimeout tool_timeout: Bound = seconds(120);
    /// Memory that one event of a stream can make us hold
    MaxEventBytes max_event_bytes: usize = 16 << 20;
    /// Memory that a response's head can make us hold
    MaxHeadBytes max_head_bytes: usize = 64 << 10;
    /// Memory that a unary body or an error body can make us hold
    MaxBodyBytes max_body_bytes: usize = 64 << 20;
}

const fn seconds(seconds: u64) -> Bound {
    Bound::Limited(Duration::from_secs(seconds))
}

impl Field {
    /// The field with that name
    ///
    /// Errors: [`ConfigError::UnknownName`].
    pub fn named(name: &str) -> Result<Self, ConfigError> {
        Self::ALL.into_iter().find(|field| field.name() == name).ok_or_else(|| ConfigError::UnknownName {
            name: name.to_owned(),
            nearest: nearest(name, Self::ALL.map(Self::name)),
        })
    }
}

/// The field's name
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Overrides {
    /// Overrides that change nothing
    pub fn new() -> Self {
        Self::default()
    }
}

/// The value, or the refusal of what was given
fn checked<V: Value>(field: Field, given: V::Given) -> Result<V, ConfigError> {
    V::check(given).ok_or_else(|| ConfigError::OutOfRange { field, value: given.to_string() })
}

/// What `text` says, if the field can have it
fn parsed<V: Value>(field: Field, text: &str) -> Result<V::Given, ConfigError> {
    let text = text.trim();
    let given: Option<V::Given> = V::Given::from_str(text).ok();
    given
        .filter(|given| V::check(*given).is_some())
        .ok_or_else(|| ConfigError::OutOfRange { field, value: text.to_owned() })
}

/// The types of a caller's arguments, by the type of the field
macro_rules! argument {
    (Bound) => { impl Into<Seconds> };
    (Duration) => { impl Into<Seconds> };
    (NonZeroU32) => { u32 };
    (usize) => { usize };
}

/// Makes from the one table all that lists the fields
macro_rules! fields {
    ($(#[doc = $about:literal] $(#[doc = $detail:literal])* $variant:ident $name:ident: $value:ident = $default:expr;)+) => {
        /// A field of the configuration
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field {
            $(#[doc = $about] $(#[doc = $detail])* $variant,)+
        }

        impl Field {
            /// All fields, in the order of the table
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// The name under which every channel knows the field
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)+ }
            }

            /// What the field bounds, in one line
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about.trim_ascii(),)+ }
            }

            /// Which values the field takes, to follow "it takes"
            pub const fn takes(self) -> &'static str {
                match self { $(Self::$variant => <$value as Value>::TAKES,)+ }
            }
        }

        /// The bounds of a call; its default is the table of rule CFG
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct RequestConfig {
            $($name: $value,)+
        }

        impl RequestConfig {
            pub(super) const BUILT_IN: Self = Self { $($name: $default,)+ };

            $(#[doc = $about]
            $(#[doc = $detail])*
            pub const fn $name(&self) -> $value {
                self.$name
            })+

            /// A copy of this configuration, with `overrides` merged over it
            ///
            /// Errors: [`ConfigError::OutOfRange`] for the first field, in the order of the
            /// table, that cannot have its value.
            pub fn with(&self, overrides: &Overrides) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($name: match overrides.$name {
                        Some(given) => checked(Field::$variant, given)?,
                        None => self.$name,
                    },)+
                })
            }

            /// The value of a field, as a text that [`Overrides::set`] takes
            pub fn get(&self, field: Field) -> String {
                match field { $(Field::$variant => self.$name.given().to_string(),)+ }
            }
        }

        impl Default for RequestConfig {
            fn default() -> Self {
                Self::BUILT_IN
            }
        }

        /// A map that deserialises as [`Overrides`]
        impl Serialize for RequestConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_struct("RequestConfig", Field::ALL.len())?;
                $(map.serialize_field(stringify!($name), &self.$name.given())?;)+
                map.end()
            }
        }

        /// Changes to a [`RequestConfig`]: those fields that were given, and nothing about the others
        ///
        /// A chain of setters cannot fail; [`RequestConfig::with`] checks what it was given.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Overrides {
            $($name: Option<<$value as Value>::Given>,)+
        }

        impl Overrides {
            /// Overrides that change nothing
            pub(crate) const NONE: Self = Self { $($name: None,)+ };

            $(#[doc = $about]
            $(#[doc = $detail])*
            #[must_use]
            pub fn $name(mut self, $name: argument!($value)) -> Self {
                self.$name = Some($name.into());
                self
            })+

            /// Sets the field called `name` to what `value` says: seconds, `inf`, or a whole number
            ///
            /// Errors: [`ConfigError::UnknownName`], [`ConfigError::OutOfRange`]; nothing is then
            /// changed.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
                let field = Field::named(name)?;
                match field {
                    $(Field::$variant => self.$name = Some(parsed::<$value>(field, value)?),)+
                }
                Ok(())
            }

            /// What is given for a field, as a text that [`Overrides::set`] takes
            pub fn get(&self, field: Field) -> Option<String> {
                match field { $(Field::$variant => self.$name.map(|given| given.to_string()),)+ }
            }

            /// Whether a field is given
            pub(super) fn gives(&self, field: Field) -> bool {
                match field { $(Field::$variant => self.$name.is_some(),)+ }
            }

            /// These overrides with `later` merged over them: where both give a field, `later` does
            #[must_use]
            pub fn merge(self, later: &Self) -> Self {
                Self { $($name: later.$name.or(self.$name),)+ }
            }
        }

        /// Overrides that give every field, so that nothing else in force matters
        impl From<RequestConfig> for Overrides {
            fn from(config: RequestConfig) -> Self {
                Self { $($name: Some(config.$name.given()),)+ }
            }
        }
    };
}

// Lets the table stand above the macros.
use {argument, fields};
