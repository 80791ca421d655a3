//! The service with a guard round every handler: one that panics costs its own answer, never the server, and each takes
//! its first step in the order of the messages.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_service::Service;

use super::wire::{DAMAGED, Damage};

/// Wraps a service of the framework. Built once, round all of its methods, so that no handler can be forgotten.
#[derive(Debug)]
pub struct Guarded<S>(pub S);

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Option<Response>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let id = request.id().cloned();
        let method = request.method().to_owned();
        if method == DAMAGED {
            let answer = request.params().and_then(|params| serde::Deserialize::deserialize(params).ok()).map(refusal);
            return futures::future::ready(Ok(answer)).boxed();
        }
        // The state behind a handler is a map of documents and a channel: neither is left half changed by a panic.
        let called = catch_unwind(AssertUnwindSafe(|| self.0.call(request)));
        let handler = match called {
            Ok(handler) => handler,
            Err(panic) => return futures::future::ready(Ok(apology(&method, id, panic.as_ref()))).boxed(),
        };
        let mut handler = AssertUnwindSafe(handler)
            .catch_unwind()
            .map(move |outcome| outcome.unwrap_or_else(|panic| Ok(apology(&method, id, panic.as_ref()))))
            .boxed();
        // The first step is taken here and now, not when the framework gets round to it. So what a message changes is
        // changed before the next one is looked at, even when a client sends `initialize` and the rest in one breath.
        match (&mut handler).now_or_never() {
            Some(outcome) => futures::future::ready(outcome).boxed(),
            None => handler,
        }
    }
}

fn refusal(damage: Damage) -> Response {
    let error = Error { code: ErrorCode::from(damage.code), message: damage.message.into(), data: None };
    Response::from_error(damage.id, error)
}

fn apology(method: &str, id: Option<Id>, panic: &(dyn Any + Send)) -> Option<Response> {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("no message");
    eprintln!("cublame lsp: a fault of cublame itself: `{method}` panicked: {said}");
    let mut error = Error::internal_error();
    error.message = format!("a fault of cublame itself while it answered `{method}`: {said}").into();
    id.map(|id| Response::from_error(id, error))
}
