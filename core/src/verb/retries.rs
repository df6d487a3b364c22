//! How often a request may be tried that was not made from a verb, by its method and path.

use http::Method;

use super::{Api, Row, anthropic, gemini, openai};
use crate::call::Retries;

/// Whether a request may be tried again (rule RTY-5), where only its method and path are known
///
/// | the end of the path | what holds |
/// |---|---|
/// | is that of a verb in the tables | what its row says; the longest of several, and [`Retries::Never`] of equals |
/// | is not known, whatever the method | [`Retries::Never`] |
///
/// What stands before a verb's path is its base URL, whatever that is; so is the version in Gemini's.
///
/// ```
/// use steadfast::call::Retries;
/// use steadfast::http::Method;
/// use steadfast::verb::retries_of;
///
/// assert_eq!(retries_of(&Method::POST, "/openai/deployments/d/chat/completions"), Retries::Allowed);
/// assert_eq!(retries_of(&Method::POST, "/v1/batches"), Retries::Never);
/// ```
pub fn retries_of(method: &Method, path: &str) -> Retries {
    let of_verbs = [openai::ALL, anthropic::ALL, gemini::ALL].into_iter().flatten();
    let known = of_verbs
        .filter(|row| row.method() == *method)
        .filter_map(|row| Some((matched(row, path)?, row.retries == Retries::Never, row.retries)))
        .max_by_key(|(length, is_never, _)| (*length, *is_never));
    known.map_or(Retries::Never, |(_, _, retries)| retries)
}

/// How much of the end of a path is that of a verb: segments, and those of them that are no identifiers
fn matched(row: &Row, path: &str) -> Option<(usize, usize)> {
    let verb = row.path.split('?').next().expect("a split has a first part");
    let verb = match row.api {
        Some(Api::Gemini) => verb.split_once("/v1beta").map_or(verb, |(_, rest)| rest),
        Some(Api::OpenAi | Api::Anthropic) | None => verb,
    };
    let mut path = path.rsplit('/').skip_while(|segment| segment.is_empty());
    let (mut segments, mut literals) = (0, 0);
    for expected in verb[1..].rsplit('/') {
        let segment = path.next()?;
        let is_matched = match expected.split_once('}') {
            // What follows a place in its segment is a method of Gemini, as in `{model}:countTokens`.
            Some((_, method)) => match segment.strip_suffix(method) {
                Some(id) => !id.is_empty(),
                None => false,
            },
            None => segment == expected,
        };
        if !is_matched {
            return None;
        }
        segments += 1;
        literals += usize::from(!expected.starts_with('{') || expected.contains(':'));
    }
    Some((segments, literals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Retries::{Allowed, Never};

    #[test]
    fn a_verb_of_the_tables_has_the_class_of_its_row() {
        for row in [openai::ALL, anthropic::ALL, gemini::ALL].concat() {
            let path = row.path.split('?').next().unwrap().replace(['{', '}'], "");
            for base in ["", "/base/path"] {
                let path = format!("{base}{path}");
                assert_eq!(retries_of(&row.method(), &path), row.retries, "{} {path}", row.name);
            }
        }
    }

    #[test]
    fn the_longest_match_holds_under_any_base() {
        for (method, path, expected) in [
            (Method::POST, "/v1/chat/completions", Allowed),
            (Method::POST, "/v1/chat/completions/", Allowed),
            (Method::POST, "/openai/deployments/gpt/chat/completions", Allowed),
            (Method::POST, "/chat/completions", Allowed),
            (Method::POST, "/v1/batches", Never),
            (Method::POST, "/v1/messages", Allowed),
            (Method::POST, "/v1/messages/batches", Never),
            (Method::POST, "/v1/files", Allowed),
            (Method::POST, "/v1/containers/c/files", Never),
            (Method::POST, "/v1/vector_stores/v/files", Never),
            (Method::POST, "/v1/conversations/embeddings", Never),
            (Method::POST, "/v1/moderations", Never),
            (Method::GET, "/v1/responses/r", Never),
            (Method::GET, "/v1/models", Allowed),
            (Method::DELETE, "/v1/models/m", Never),
            (Method::POST, "/v1beta/models/g:generateContent", Allowed),
            (Method::POST, "/v1/projects/p/publishers/google/models/g:streamGenerateContent", Allowed),
            (Method::POST, "/v1beta/models/g:batchGenerateContent", Never),
            (Method::POST, "/v1beta/batches/b:cancel", Never),
        ] {
            assert_eq!(retries_of(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_tried_again_by_any_method() {
        for path in ["/v1/threads/t/messages", "/", "", "/v1/chat/completions/x", "/xchat/completion"] {
            for method in [
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
                Method::OPTIONS,
            ] {
                assert_eq!(retries_of(&method, path), Never, "{method} {path}");
            }
        }
    }
}
