//! The record of a session, on a thread that may block: orders are carried out one after the other.

use tokio::sync::{mpsc, oneshot};

use super::record::Record;

/// Takes orders for a record.
#[derive(Debug, Clone)]
pub struct Desk(mpsc::UnboundedSender<Order>);

type Order = Box<dyn FnOnce(&mut Record) + Send>;

impl Desk {
    pub fn open(mut record: Record) -> Self {
        let (orders, mut queue) = mpsc::unbounded_channel::<Order>();
        tokio::task::spawn_blocking(move || {
            while let Some(order) = queue.blocking_recv() {
                order(&mut record);
            }
        });
        Self(orders)
    }

    pub fn tell(&self, order: impl FnOnce(&mut Record) + Send + 'static) {
        self.0.send(Box::new(order)).ok();
    }

    /// The order is in the queue when this returns, whenever the answer is waited for.
    pub fn ask<T: Send + 'static, F: FnOnce(&mut Record) -> T + Send + 'static>(
        &self,
        order: F,
    ) -> impl Future<Output = Option<T>> + use<T, F> {
        let (answer, answered) = oneshot::channel();
        self.tell(move |record| {
            answer.send(order(record)).ok();
        });
        async { answered.await.ok() }
    }

    /// When everything that was ordered is done.
    pub async fn close(self) {
        self.ask(|_| ()).await;
    }
}
