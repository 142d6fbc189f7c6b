//! What a worker of the demo does with an order: validate, reserve, charge, pay out, notify, and a receipt.
//!
//! | stage | what it shows |
//! | --- | --- |
//! | validate | a memoised step; a bad order is a terminal error |
//! | reserve | a fenced operation: the service refuses an older token |
//! | charge | an idempotent one, whose key is remembered for as long as the bank says |
//! | payout | a queryable one, with a probe |
//! | notify | a blind one: never repeated, a person decides |
//! | receipt | the handler's own row, in the transaction of the completion |
//!
//! Two versions of it, [`OrderV1`] and [`OrderV2`], differ in the shape of their checkpoint. What they ask of the service is
//! the same to the letter: an operation that changes its request between versions would be refused.

mod progress;
mod receipt;
mod shop;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aegis_worker::{ProtocolRange, Protocols, TaskContext, TaskError, TaskHandler};
use serde::{Deserialize, Serialize};

use crate::orders::{CODE_BAD_ORDER, Order};
use crate::payments::Effect;
use crate::run::KIND;

pub use receipt::Receipt;
pub use shop::{Shop, ShopError};

use progress::{Progress, ProgressV1, ProgressV2};

/// How often the file that holds results back is looked for.
const HOLD_LOOK: Duration = Duration::from_millis(20);

/// What both versions work with.
#[derive(Debug)]
pub struct OrderWork {
    /// The payment service.
    pub shop: Shop,
    /// How long each stage takes, so that there is something to interrupt.
    pub pace: Duration,
    /// While this file exists, finished results are kept in hand.
    pub hold: Option<PathBuf>,
}

/// Version 1: reads and writes protocol 1.
#[derive(Debug, Clone)]
pub struct OrderV1(pub Arc<OrderWork>);

/// Version 2: reads protocols 1 and 2 and writes 2.
#[derive(Debug, Clone)]
pub struct OrderV2(pub Arc<OrderWork>);

/// What validation found out, memoised.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Validated {
    amount_minor: i64,
}

impl TaskHandler for OrderV1 {
    const KIND: &'static str = KIND;
    type Input = Order;
    type Output = Receipt;
    type Checkpoint = ProgressV1;

    async fn run(&self, ctx: TaskContext<ProgressV1>, order: Order) -> Result<Receipt, TaskError> {
        self.0.fulfil(&ctx, order, "version 1").await
    }
}

impl TaskHandler for OrderV2 {
    const KIND: &'static str = KIND;
    type Input = Order;
    type Output = Receipt;
    type Checkpoint = ProgressV2;

    fn protocols(&self) -> Protocols {
        ProtocolRange::new(1, 2, 2)
            .map(Protocols::new)
            .unwrap_or_default()
            .upcast_checkpoint(1, progress::from_v1)
    }

    async fn run(&self, ctx: TaskContext<ProgressV2>, order: Order) -> Result<Receipt, TaskError> {
        self.0.fulfil(&ctx, order, "version 2").await
    }
}

impl OrderWork {
    async fn fulfil<P: Progress>(
        &self,
        ctx: &TaskContext<P>,
        order: Order,
        written_by: &'static str,
    ) -> Result<Receipt, TaskError> {
        // A bad order, and one that finds everything done, take a moment too: they are work of the same kind, and a worker
        // claims ahead of what it measures as short.
        ctx.unless_cancelled(tokio::time::sleep(self.pace / 2))
            .await?;
        ctx.step("validate", &order.order_id, || async { validated(&order) })
            .await?;
        let mut progress = ctx.checkpoint().await?.unwrap_or_default();
        let mut receipts = Vec::with_capacity(Effect::ALL.len());
        for effect in Effect::ALL {
            if !progress.has(effect) {
                ctx.unless_cancelled(tokio::time::sleep(self.pace)).await?;
            }
            // Answered from the ledger when an earlier attempt has its result.
            let paid = self.shop.perform(ctx, &order, effect).await?;
            if !progress.has(effect) {
                progress.done(effect, &paid.receipt);
                ctx.save_checkpoint(&progress).await?;
            }
            receipts.push(paid.receipt);
        }
        self.hold_back().await;
        receipt::complete(ctx, order.order_id, receipts, written_by).await
    }

    /// Not ended by a cancellation: the work is finished, and its result is what the worker has in hand.
    async fn hold_back(&self) {
        while self.hold.as_ref().is_some_and(|path| path.exists()) {
            tokio::time::sleep(HOLD_LOOK).await;
        }
    }
}

fn validated(order: &Order) -> Result<Validated, TaskError> {
    match order.validate() {
        Ok(valid) => Ok(Validated {
            amount_minor: valid.amount_minor,
        }),
        Err(invalid) => Err(TaskError::terminal(CODE_BAD_ORDER, invalid.to_string())),
    }
}
