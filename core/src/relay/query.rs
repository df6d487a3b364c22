//! Credentials in the query of a target: some APIs take them there.

use super::route::APP_KEY_PARAMETER;
use crate::percent;

/// The parameters that carry a key to a provider, in whatever dialect: the app's own gives way to the
/// route's
pub(super) const CREDENTIALS: [&str; 4] = [APP_KEY_PARAMETER, "api_key", "api-key", "access_token"];

/// The values of the parameters named [`APP_KEY_PARAMETER`], decoded
pub(super) fn keys(target: &str) -> Vec<Vec<u8>> {
    let (_, query) = target.split_once('?').unwrap_or_default();
    let values = query.split('&').filter(|pair| is_one_of(pair, &[APP_KEY_PARAMETER]));
    values.filter_map(|pair| Some(percent::decode(pair.split_once('=')?.1))).collect()
}

/// The target without the parameters of these names, in whatever spelling; the rest stays as it came
pub(super) fn without(target: &str, names: &[&str]) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    if !query.split('&').any(|pair| is_one_of(pair, names)) {
        return target.to_owned();
    }
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_one_of(pair, names)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

fn is_one_of(pair: &str, names: &[&str]) -> bool {
    let name = percent::decode(pair.split('=').next().unwrap_or_default());
    names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_any_spelling_and_the_rest_stays_as_it_came() {
        for (target, found, rest) in [
            ("/v1", &[][..], "/v1"),
            ("/v1?", &[], "/v1?"),
            ("/v1?alt=sse", &[], "/v1?alt=sse"),
            ("/v1?key=a%2Fb", &["a/b"], "/v1"),
            ("/v1?alt=sse&key=k&x=%6b", &["k"], "/v1?alt=sse&x=%6b"),
            ("/v1?%6beY=k&&key=l&key", &["k", "l"], "/v1?"),
            ("/v1?monkey=k&keys=k&x=key", &[], "/v1?monkey=k&keys=k&x=key"),
            ("/v1?a=b?key=k", &[], "/v1?a=b?key=k"),
        ] {
            assert_eq!(keys(target), found.iter().map(|key| key.as_bytes()).collect::<Vec<_>>(), "{target}");
            assert_eq!(without(target, &[APP_KEY_PARAMETER]), rest, "{target}");
        }
    }
}
