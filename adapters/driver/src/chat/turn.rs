//! One turn of a conversation under way.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use steadfast::call::{Call, Item, Piece, RequestError};
use steadfast::chat::{Conversation, Cost, Exchange, Input};
use steadfast::outcome::{Outcome, Turn};

use crate::calling::CallStream;
use crate::canceller::Canceller;
use crate::client::{Calls, Client, Network};
use crate::driver::Runtime;

impl<N: Network> Client<N> {
    /// Says something in a conversation, and takes the answer
    ///
    /// The call begins now, with what is in force here (rule CFG-5). The conversation is borrowed until
    /// the [`Chat`] is over or dropped. A failed call leaves it as it was (rule CHAT-1).
    ///
    /// Errors: what is wrong with the endpoint that the conversation was given.
    pub fn chat<'c>(
        &self,
        conversation: &'c mut Conversation,
        input: impl Into<Input>,
    ) -> Result<Chat<'c, Calls<N>>, RequestError> {
        let exchange = conversation.exchange(input);
        let stream = self.stream(exchange.request()?);
        Ok(Chat { stream, exchange: Some(exchange), cost: Cost::default() })
    }
}

/// A turn of a conversation under way: a [`Stream`] of pieces of the answer, and an [`Outcome`] at the end
///
/// The turn is added to the conversation at its end, be it by [`Chat::outcome`] or by taking all
/// pieces. Dropping it before that cancels the call, and the conversation is as it was.
#[must_use = "a turn does nothing unless it is polled"]
pub struct Chat<'c, R: Runtime<Call>> {
    stream: CallStream<R>,
    /// None once it is over
    exchange: Option<Exchange<'c>>,
    cost: Cost,
}

impl<R: Runtime<Call>> Chat<'_, R> {
    /// The next piece; `None` once the turn is over, and part of its conversation where it succeeded
    pub async fn next(&mut self) -> Option<Piece> {
        self.next_with(|item| Piece::from(item)).await
    }

    /// The next item, lent to `take`, which may look at it without copying; `None` once the turn is over
    pub async fn next_with<T>(&mut self, mut take: impl FnMut(Item<'_>) -> T) -> Option<T> {
        poll_fn(|cx| self.poll_with(cx, &mut take)).await
    }

    /// The end of the turn; pieces that were not taken are in it
    pub async fn outcome(mut self) -> Outcome {
        while self.next_with(|_| ()).await.is_some() {}
        self.stream.outcome().await
    }

    /// A handle by which another task or thread can give the turn up
    pub fn canceller(&mut self) -> Canceller {
        self.stream.canceller()
    }

    /// Gives up: the outcome is there at the next poll, and says so
    pub fn cancel(&mut self) {
        self.stream.cancel();
    }

    /// The answer as far as it came
    pub fn turn(&self) -> &Turn {
        self.stream.turn()
    }

    /// What the turn has cost; nothing before it is over, or where it failed
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut impl FnMut(Item<'_>) -> T,
    ) -> Poll<Option<T>> {
        let item = ready!(self.stream.poll_with(cx, take));
        if let (None, Some(outcome)) = (&item, self.stream.ended())
            && let Some(exchange) = self.exchange.take()
        {
            self.cost = exchange.finish(outcome);
        }
        Poll::Ready(item)
    }
}

impl<R: Runtime<Call> + Unpin> Stream for Chat<'_, R> {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.poll_with(cx, &mut |item: Item<'_>| Piece::from(item))
    }
}

impl<R: Runtime<Call>> fmt::Debug for Chat<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat").field("call", &self.stream).field("exchange", &self.exchange).finish()
    }
}
