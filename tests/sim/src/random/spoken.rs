//! What a server has said of its answer, as far as a client has read.

use steadfast::outcome::{Choice, ToolCall, Turn};

/// A piece of an answer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Text,
    Reasoning,
    Refusal,
    /// The id of a tool call, which opens it
    ToolId,
    ToolName,
    ToolArguments,
    /// The provider's word for why it stopped
    Finish,
    /// What the provider counted of the prompt and of the answer
    Usage(Option<u8>, Option<u8>),
}

/// A piece, and where its words end among all that are said
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saying {
    pub(crate) choice: u8,
    pub(crate) what: What,
    pub(crate) upto: u32,
}

/// All that is said in one answer
#[derive(Debug, Default)]
pub(crate) struct Speech {
    pub(crate) words: String,
    pub(crate) sayings: Vec<Saying>,
}

impl Speech {
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.sayings.clear();
    }

    /// All text of the first choice
    pub(crate) fn text(&self) -> String {
        let mut all = Answer::default();
        all.hear(self, self.sayings.len());
        all.text().to_owned()
    }
}

/// Answers of one attempt; no server speaks of more than two
#[derive(Debug, Default)]
pub(crate) struct Answer {
    heard: usize,
    choices: [Spoken; 2],
    usage: Option<[Option<u64>; 2]>,
}

#[derive(Debug, Default)]
struct Spoken {
    text: String,
    reasoning: String,
    refusal: String,
    tool_calls: Vec<ToolCall>,
    /// Empty where no word for it came
    finish: String,
}

impl Answer {
    /// Nothing is said yet
    pub(crate) fn clear(&mut self) {
        self.heard = 0;
        self.usage = None;
        for Spoken { text, reasoning, refusal, tool_calls, finish } in &mut self.choices {
            [text, reasoning, refusal, finish].into_iter().for_each(String::clear);
            tool_calls.clear();
        }
    }

    /// What is said in the first `upto` pieces
    pub(crate) fn hear(&mut self, speech: &Speech, upto: usize) {
        let sayings = speech.sayings.get(self.heard..upto).unwrap_or_default();
        let mut from = self.heard.checked_sub(1).map_or(0, |last| speech.sayings[last].upto);
        self.heard = self.heard.max(upto);
        for Saying { choice, what, upto } in sayings {
            let words = &speech.words[from as usize..*upto as usize];
            from = *upto;
            let said = &mut self.choices[usize::from(*choice)];
            let last = said.tool_calls.last_mut();
            let place = match what {
                What::Text => &mut said.text,
                What::Reasoning => &mut said.reasoning,
                What::Refusal => &mut said.refusal,
                What::ToolId => {
                    said.tool_calls.push(ToolCall { id: words.to_owned(), ..ToolCall::default() });
                    continue;
                }
                What::ToolName => &mut last.expect("an id comes first").name,
                What::ToolArguments => &mut last.expect("an id comes first").arguments,
                // The last word for it stands.
                What::Finish => {
                    said.finish.clear();
                    &mut said.finish
                }
                What::Usage(input, output) => {
                    let [had_input, had_output] = self.usage.unwrap_or_default();
                    let later = |now: Option<u8>, before| now.map(u64::from).or(before);
                    self.usage = Some([later(*input, had_input), later(*output, had_output)]);
                    continue;
                }
            };
            place.push_str(words);
        }
    }

    /// Text of the first choice
    pub(crate) fn text(&self) -> &str {
        &self.choices[0].text
    }

    /// Whether that is the answer, but for what the provider says about it
    pub(crate) fn is_said_in(&self, turn: &Turn) -> bool {
        let nothing = Choice::default();
        let is_said = |(index, said): (usize, &Spoken)| {
            let found = turn.choices.iter().find(|choice| choice.index as usize == index);
            let Choice { text, reasoning, refusal, tool_calls, .. } = found.unwrap_or(&nothing);
            *text == said.text
                && *reasoning == said.reasoning
                && *refusal == said.refusal
                && *tool_calls == said.tool_calls
        };
        self.choices.iter().enumerate().all(is_said)
            && turn.choices.iter().all(|choice| (choice.index as usize) < self.choices.len())
    }

    /// Whether the provider says so about it: why it stopped, and what it counted
    pub(crate) fn is_said_about(&self, turn: &Turn) -> bool {
        let counted = turn.usage.as_ref().map(|usage| [usage.input_tokens, usage.output_tokens]);
        let is_finished = |(index, said): (usize, &Spoken)| {
            let found = turn.choices.iter().find(|choice| choice.index as usize == index);
            found.and_then(|choice| choice.finish_reason.as_deref()).unwrap_or_default() == said.finish
        };
        counted == self.usage && self.choices.iter().enumerate().all(is_finished)
    }
}
