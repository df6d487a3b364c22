//! A list that is nearly always of one element, and then allocates nothing.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// The elements of a JSON array, the first of them inline
///
/// Null elements are left out; null in place of the array is no element.
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
        f.write_str("an array or null")
    }

    fn visit_unit<E>(self) -> Result<Few<T>, E> {
        Ok(Few::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Few<T>, A::Error> {
        let mut few = Few::default();
        while let Some(element) = elements.next_element::<Option<T>>()? {
            match element {
                Some(element) if few.first.is_none() => few.first = Some(element),
                Some(element) => few.rest.push(element),
                None => {}
            }
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Vec<u32> {
        serde_json::from_str::<Few<u32>>(json).unwrap().iter().copied().collect()
    }

    #[test]
    fn keeps_the_order_and_leaves_out_nulls() {
        assert!(read("[]").is_empty());
        assert_eq!(read("[7]"), [7]);
        assert_eq!(read("[3,null,1,2]"), [3, 1, 2]);
        assert!(read("null").is_empty());
        assert!(serde_json::from_str::<Few<u32>>("{}").is_err());
    }

    #[test]
    fn one_element_takes_no_heap() {
        let few = serde_json::from_str::<Few<u32>>("[7]").unwrap();
        assert_eq!((few.len(), few.rest.capacity(), few.is_empty()), (1, 0, false));
    }
}
