//! Plans of something rare, so that few runs meet every row of the coverage.

use std::time::Duration;

use steadfast::call::Shape;
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;

use super::choices::Choices;
use super::plan::{
    CallPlan, Cancel, ContentType, Cut, End, Exchange, Framing, Head, Piece, Plan, Problem, RetryAfter,
    Streamed,
};

/// One plan in so many is of something rare
pub(super) const ONE_IN: u32 = 7;

/// What happens in one of them
const RARE: [fn(&mut Plan, &mut Choices<'_>); 16] = [
    prompt_blocked,
    message_begins_again,
    choice_after_marker,
    not_json,
    overload_inside_the_stream,
    message_outlasts_the_call,
    bytes_before_the_request,
    large_head,
    json_array,
    slow_consumer,
    consumer_fails,
    body_fails,
    unary_body_breaks_off,
    given_up,
    answer_near_its_cap,
    proxy_refuses,
];

const SECOND: Duration = Duration::from_secs(1);

impl Plan {
    /// A plan in which something happens that is rare in others, and little else
    pub(super) fn redraw_rare(&mut self, choices: &mut Choices<'_>) {
        let happens = choices.pick(&RARE);
        self.config = RequestConfig::default();
        self.budget = None;
        self.exchanges.clear();
        self.exchanges.push(Exchange::new());
        let dialect = choices.pick(&Dialect::ALL);
        self.calls.push(CallPlan::stream(dialect));
        let client = &mut self.calls[0].client;
        client.read_bytes = choices.pick(&[0, 0, 0, 100, 7]);
        client.drops = if choices.one_in(4) { choices.below(1 << 16) } else { 0 };
        happens(self, choices);
    }

    fn is_of(&mut self, dialect: Dialect) {
        self.calls[0].dialect = Some(dialect);
    }

    fn says(&mut self, pieces: &[Piece]) {
        self.exchanges[0].pieces = pieces.iter().map(|piece| (Duration::ZERO, *piece)).collect();
    }
}

fn prompt_blocked(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.is_of(Dialect::Gemini);
    let before = choices.pick(&[Piece::Opening, Piece::Text, Piece::Null]);
    plan.says(&[before, Piece::Blocked]);
}

fn message_begins_again(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.is_of(Dialect::Anthropic);
    let words = choices.pick(&[Piece::Text, Piece::Tool]);
    plan.says(&[Piece::Opening, words, Piece::Opening, Piece::Text, Piece::Marker, Piece::Sentinel]);
}

fn choice_after_marker(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.is_of(choices.pick(&[Dialect::OpenAiChat, Dialect::OpenAiCompletions, Dialect::Gemini]));
    let again = choices.pick(&[Piece::Marker, Piece::StopsEarly]);
    plan.says(&[
        Piece::Opening,
        Piece::Text,
        Piece::Marker,
        Piece::SecondChoice,
        again,
        Piece::Usage,
        Piece::Sentinel,
    ]);
    // That the answer goes on shows once its event is over, and nothing else has come by then.
    plan.exchanges[0].pieces[3].0 = choices.pick(&[SECOND / 10, SECOND, Duration::ZERO]);
    plan.exchanges[0].pieces[4].0 = SECOND / 10;
}

fn not_json(plan: &mut Plan, choices: &mut Choices<'_>) {
    let before = choices.pick(&[Piece::Opening, Piece::Text, Piece::Marker]);
    plan.says(&[before, Piece::NotJson, Piece::Text, Piece::Marker, Piece::Sentinel]);
}

fn overload_inside_the_stream(plan: &mut Plan, choices: &mut Choices<'_>) {
    let before = choices.pick(&[Piece::Opening, Piece::Comment, Piece::Ping]);
    plan.says(&[before, Piece::InBand(Problem::Overload)]);
    plan.exchanges.push(Exchange::new());
}

/// And may then be followed by another one on its connection
fn message_outlasts_the_call(plan: &mut Plan, choices: &mut Choices<'_>) {
    let last = (choices.pick(&[SECOND / 4, SECOND / 2, SECOND]), Piece::Comment);
    plan.exchanges[0].pieces.push(last);
    plan.exchanges.push(Exchange::new());
    plan.calls.push(CallPlan { idle: choices.pick(&[SECOND, Duration::ZERO]), ..plan.calls[0].clone() });
}

fn bytes_before_the_request(plan: &mut Plan, choices: &mut Choices<'_>) {
    let idle = choices.pick(&[2 * SECOND, SECOND, SECOND / 2]);
    plan.exchanges[0].surplus = Some(SECOND);
    plan.exchanges.push(Exchange::new());
    let mut second = CallPlan { idle, ..plan.calls[0].clone() };
    second.client.looks = false;
    plan.calls.push(second);
}

fn large_head(plan: &mut Plan, choices: &mut Choices<'_>) {
    let overrides = Overrides::new().max_head_bytes(300);
    plan.config = plan.config.with(&overrides).expect("a bound that can be had");
    plan.exchanges[0].head.padding = choices.pick(&[400, 150, 1_000]);
}

fn json_array(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.is_of(Dialect::Gemini);
    plan.exchanges[0].head.content_type = ContentType::JsonArray;
    let middle = choices.pick(&[Piece::Text, Piece::Thought, Piece::Tool, Piece::Unknown]);
    plan.says(&[Piece::Opening, Piece::Text, middle, Piece::Marker]);
}

fn slow_consumer(plan: &mut Plan, choices: &mut Choices<'_>) {
    let client = &mut plan.calls[0].client;
    client.away = Some((1, choices.pick(&[SECOND, SECOND / 100, 150 * SECOND])));
    client.watched = choices.one_in(2);
    plan.says(&[Piece::Opening, Piece::Text, Piece::Text, Piece::Text, Piece::Marker, Piece::Sentinel]);
}

fn consumer_fails(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.calls[0].client.fails_at = 1 + choices.below(2);
    plan.says(&[Piece::Opening, Piece::Text, Piece::Text, Piece::Marker, Piece::Sentinel]);
}

fn body_fails(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.calls[0].body_bytes = 500;
    plan.calls[0].streamed = Some(Streamed {
        of_known_length: choices.one_in(2),
        once: choices.one_in(2),
        pause: choices.pick(&[Duration::ZERO, SECOND / 10]),
        read_bytes: choices.pick(&[0, 40]),
        fails_at: Some(choices.below(400)),
    });
}

fn unary_body_breaks_off(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.calls[0].shape = Shape::Unary;
    let broken = &mut plan.exchanges[0];
    broken.head.framing = choices.pick(&[Framing::Length, Framing::Chunks]);
    broken.cut = Some(Cut::Back(1 + choices.below(20)));
    broken.end = (Duration::ZERO, End::Reset);
    plan.exchanges.push(Exchange::new());
}

/// In the pause after an overload, or before the call has begun
fn given_up(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.exchanges[0].head = Head { retry_after: RetryAfter::Seconds(3), ..Head::new(503) };
    plan.calls[0].client.cancel = choices.pick(&[Cancel::After(SECOND), Cancel::AtEvent(0)]);
}

fn answer_near_its_cap(plan: &mut Plan, choices: &mut Choices<'_>) {
    let overrides = Overrides::new().max_body_bytes(2_000);
    plan.config = plan.config.with(&overrides).expect("a bound that can be had");
    plan.is_of(choices.pick(&[Dialect::OpenAiChat, Dialect::Gemini, Dialect::Ollama]));
    let last = choices.pick(&[Piece::Text, Piece::Long]);
    plan.says(&[Piece::Long, Piece::Long, Piece::Long, last, Piece::Marker, Piece::Sentinel]);
}

fn proxy_refuses(plan: &mut Plan, choices: &mut Choices<'_>) {
    plan.calls[0].forwarded = true;
    plan.exchanges[0].head =
        Head { framing: choices.pick(&[Framing::Chunks, Framing::Eof]), ..Head::new(407) };
}
