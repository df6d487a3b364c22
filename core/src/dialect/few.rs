//! A list that is nearly always of one object, and then allocates nothing.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::json::Member;

/// The objects of a JSON array, the first of them inline
///
/// Elements that are empty, such as null or `""`, are left out, and so is a value of another type in
/// place of the array if it is empty. Reading fails on everything else.
#[derive(Clone, Debug)]
pub struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Few<T> {
    /// The elements in order
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    /// How many elements there are
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// Whether there is no element
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

/// A list of one element
impl<T> From<T> for Few<T> {
    fn from(element: T) -> Self {
        Self { first: Some(element), rest: Vec::new() }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_unit<E>(self) -> Result<Few<T>, E> {
        Ok(Few::default())
    }

    fn visit_bool<E: Error>(self, is_true: bool) -> Result<Few<T>, E> {
        self.unless(is_true, Unexpected::Bool(is_true))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Few<T>, E> {
        self.unless(number != 0, Unexpected::Unsigned(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Few<T>, E> {
        self.unless(!text.is_empty(), Unexpected::Str(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Few<T>, A::Error> {
        self.unless(members.next_key::<IgnoredAny>()?.is_some(), Unexpected::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Few<T>, A::Error> {
        let mut few = Few::default();
        while let Some(element) = elements.next_element::<Member<T>>()? {
            match element {
                Member::Object(element) if few.first.is_none() => few.first = Some(element),
                Member::Object(element) => few.rest.push(element),
                Member::Absent => {}
                Member::Other => return Err(A::Error::custom("no object in an array of objects")),
            }
        }
        Ok(few)
    }
}

impl<T> FewVisitor<T> {
    /// No element, unless there is something that would be lost
    fn unless<E: Error>(&self, lost: bool, found: Unexpected<'_>) -> Result<Few<T>, E> {
        if lost {
            return Err(E::invalid_type(found, &"an array of objects"));
        }
        Ok(Few::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    fn read(json: &str) -> Vec<String> {
        let few = serde_json::from_str::<Few<Map<String, Value>>>(json).unwrap();
        few.iter().map(|object| Value::from(object.clone()).to_string()).collect()
    }

    #[test]
    fn keeps_the_order_and_leaves_out_what_is_empty() {
        assert_eq!(read(r#"[{"a":7}]"#), [r#"{"a":7}"#]);
        assert_eq!(read(r#"[{"a":3},null,{},"",{"a":2}]"#), [r#"{"a":3}"#, "{}", r#"{"a":2}"#]);
        for nothing in ["null", "[]", "{}", r#""""#, "false", "0"] {
            assert!(read(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for other in ["{\"a\":1}", "\"a\"", "true", "7", "-7", "0.5", "[1]", "[[{}]]", "[\"a\"]"] {
            assert!(serde_json::from_str::<Few<Map<String, Value>>>(other).unwrap_err().is_data(), "{other}");
        }
    }

    #[test]
    fn one_element_takes_no_heap() {
        let few = serde_json::from_str::<Few<Map<String, Value>>>("[{}]").unwrap();
        assert_eq!((few.len(), few.rest.capacity(), few.is_empty()), (1, 0, false));
    }
}
