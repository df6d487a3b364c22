//! What a request says of itself to those who watch calls.

use std::borrow::Cow;

use serde::Deserialize;

use super::Request;

impl Request {
    /// The path of its URL, without the query
    pub fn path(&self) -> &str {
        self.target.path()
    }

    /// The model that the request names: `model` of its JSON body, or that of its path
    ///
    /// Paths that name one are those of Gemini (`…/models/{model}:generateContent`), Azure
    /// (`…/deployments/{model}/…`) and Bedrock (`…/model/{model}/…`). `None` where neither does, or the
    /// body is no JSON. One that is in no
    /// buffer is not read, and the others anew each time.
    pub fn model(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            model: Cow<'a, str>,
        }
        let body = self.body.as_bytes();
        let named = body.and_then(|body| serde_json::from_slice::<Named<'_>>(body).ok());
        named.map(|named| named.model.into_owned()).or_else(|| in_path(self.target.path()).map(str::to_owned))
    }
}

fn in_path(path: &str) -> Option<&str> {
    let mut segments = path.split('/');
    segments.find(|segment| matches!(*segment, "models" | "deployments" | "model"))?;
    let model = segments.next()?;
    let model = model.split_once(':').map_or(model, |(model, _)| model);
    (!model.is_empty()).then_some(model)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_model_is_in_the_body_or_in_the_path() {
        let model = |url: &str, body: serde_json::Value| {
            Request::post(&format!("http://h{url}")).json(&body).build().unwrap().model()
        };
        let chat = json!({"messages": [{"model": "no"}], "model": "gpt-5"});
        assert_eq!(model("/v1/chat/completions", chat).as_deref(), Some("gpt-5"));
        let gemini = "/v1beta/models/gemini-3:streamGenerateContent?alt=sse&key=k";
        assert_eq!(model(gemini, json!({})).as_deref(), Some("gemini-3"));
        let azure = "/openai/deployments/mine/chat/completions";
        assert_eq!(model(azure, json!({"messages": []})).as_deref(), Some("mine"));
        assert_eq!(model("/v1/models", json!({})), None);
        assert_eq!(model("/v1/chat/completions", json!([1])), None);
        let bytes = Request::post("http://h/v1/audio").body("\u{0}model").build().unwrap();
        assert_eq!(bytes.model(), None);
    }
}
