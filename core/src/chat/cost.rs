//! What conversations cost: tokens and money, counted without rounding.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::Tokens;

/// What a conversation has cost
///
/// Only turns that were kept are in it. A failed call may have cost something all the same: its
/// [`Billing`](crate::outcome::Billing) tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Calls that were kept
    pub calls: u64,
    /// Of those, the ones whose provider did not say what it counted
    pub uncounted: u64,
    /// Tokens
    pub tokens: Tokens,
    /// Money, where the conversation has prices
    pub amount: Amount,
}

impl Cost {
    /// The cost of one call
    pub(super) fn of_call(tokens: Option<Tokens>, prices: Option<&Prices>) -> Self {
        let counted = tokens.unwrap_or_default();
        Self {
            calls: 1,
            uncounted: u64::from(tokens.is_none()),
            tokens: counted,
            amount: prices.map_or(Amount::default(), |prices| prices.of(&counted)),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.uncounted = self.uncounted.saturating_add(other.uncounted);
        self.tokens += other.tokens;
        self.amount = self.amount + other.amount;
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// What a provider asks for tokens of each kind; in the caller's currency
///
/// ```
/// use steadfast::chat::{Prices, Tokens};
///
/// let prices = Prices::new("1.25".parse()?, "10".parse()?).cached_input("0.125".parse()?);
/// let tokens = Tokens { input: 800, cached_input: 200, output: 50, ..Tokens::default() };
/// assert_eq!(prices.of(&tokens).to_string(), "0.001525");
/// # Ok::<(), steadfast::chat::PriceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    input: Price,
    cached_input: Option<Price>,
    cache_write: Option<Price>,
    output: Price,
    reasoning: Option<Price>,
}

impl Prices {
    /// Prices of input and output; tokens of any other kind cost the same, unless another price is given
    pub const fn new(input: Price, output: Price) -> Self {
        Self { input, cached_input: None, cache_write: None, output, reasoning: None }
    }

    /// The price of input that the provider had in its cache
    #[must_use]
    pub const fn cached_input(mut self, price: Price) -> Self {
        self.cached_input = Some(price);
        self
    }

    /// The price of input that the provider put into its cache
    #[must_use]
    pub const fn cache_write(mut self, price: Price) -> Self {
        self.cache_write = Some(price);
        self
    }

    /// The price of reasoning
    #[must_use]
    pub const fn reasoning(mut self, price: Price) -> Self {
        self.reasoning = Some(price);
        self
    }

    /// What so many tokens cost
    pub fn of(&self, tokens: &Tokens) -> Amount {
        self.input.of(tokens.input)
            + self.cached_input.unwrap_or(self.input).of(tokens.cached_input)
            + self.cache_write.unwrap_or(self.input).of(tokens.cache_write)
            + self.output.of(tokens.output)
            + self.reasoning.unwrap_or(self.output).of(tokens.reasoning)
    }
}

/// The price of a million tokens, in millionths of the currency's unit
///
/// Read from a decimal with at most six places: `"1.25"` is 1.25 dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(u64);

impl Price {
    const PLACES: u32 = 6;

    /// So many millionths of the currency's unit per million tokens
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    fn of(self, tokens: u64) -> Amount {
        // A millionth per million tokens is 10⁻¹² of the unit per token.
        Amount(u128::from(self.0) * u128::from(tokens))
    }
}

impl FromStr for Price {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, PriceError> {
        let refused = || PriceError { text: text.to_owned() };
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_decimal = is_digits(whole) && is_digits(places) && !(whole.is_empty() && places.is_empty());
        if !is_decimal || places.len() > Self::PLACES as usize {
            return Err(refused());
        }
        let digits = format!("{whole}{places:0<width$}", width = Self::PLACES as usize);
        digits.parse().map(Self).map_err(|_| refused())
    }
}

/// A price that cannot be read
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no price: give a decimal such as 1.25, with at most six places, per million tokens")]
pub struct PriceError {
    text: String,
}

/// An amount of money, in 10⁻¹² of the currency's unit: sums of prices and tokens need no rounding
///
/// Prints as a decimal, with as many places as it has. Stays at its largest value where a sum would go
/// past it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

impl Amount {
    const PLACES: usize = 12;

    /// The amount in 10⁻¹² of the currency's unit
    pub const fn trillionths(self) -> u128 {
        self.0
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10u128.pow(Self::PLACES as u32);
        let places = format!("{:0width$}", self.0 % unit, width = Self::PLACES);
        let places = places.trim_end_matches('0');
        let point = if places.is_empty() { "" } else { "." };
        f.pad(&format!("{}{point}{places}", self.0 / unit))
    }
}

/// As a string: no JSON number holds every amount
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_decimals_of_six_places() {
        for (text, millionths) in
            [("1.25", 1_250_000), ("0.000001", 1), ("15", 15_000_000), (".5", 500_000), ("3.", 3_000_000)]
        {
            assert_eq!(text.parse(), Ok(Price::from_millionths(millionths)), "{text}");
        }
        for bad in ["", ".", "-1", "+1", "1e3", "0.0000001", "1,5", "NaN", "99999999999999999999"] {
            assert!(bad.parse::<Price>().unwrap_err().to_string().contains("is no price"), "{bad}");
        }
    }

    #[test]
    fn amounts_print_every_place_that_they_have() {
        let amount = |trillionths| Amount(trillionths).to_string();
        assert_eq!(amount(0), "0");
        assert_eq!(amount(1), "0.000000000001");
        assert_eq!(amount(1_525_000_000), "0.001525");
        assert_eq!(amount(12_000_000_000_000), "12");
    }

    #[test]
    fn a_million_calls_sum_up_without_an_error() {
        let prices = Prices::new("0.1".parse().unwrap(), "0.7".parse().unwrap());
        let call = Cost::of_call(Some(Tokens { input: 1, output: 3, ..Tokens::default() }), Some(&prices));
        let mut sum = Cost::default();
        for _ in 0..1_000_000 {
            sum += call;
        }
        assert_eq!(sum.amount.to_string(), "2.2");
        assert_eq!((sum.calls, sum.tokens.total()), (1_000_000, 4_000_000));
    }

    #[test]
    fn kinds_without_a_price_cost_what_their_side_costs() {
        let prices = Prices::new("2".parse().unwrap(), "8".parse().unwrap());
        let tokens = Tokens { input: 1, cached_input: 1, cache_write: 1, output: 1, reasoning: 1 };
        assert_eq!(prices.of(&tokens).trillionths(), (2 + 2 + 2 + 8 + 8) * 1_000_000);
        let own = |price: &str| price.parse::<Price>().unwrap();
        let prices = prices.cached_input(own("0.5")).cache_write(own("3")).reasoning(own("9"));
        assert_eq!(prices.of(&tokens).trillionths(), 22_500_000);
    }
}
