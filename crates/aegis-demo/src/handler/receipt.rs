//! The end of an order: a row of the handler's own, written in the very transaction that completes the task.
//!
//! A worker that has lost its right gets neither: the fence, which is judged last, takes the row back.

use aegis_worker::{TaskContext, TaskError};
use serde::{Deserialize, Serialize};

use super::progress::Progress;

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The order.
    pub order_id: String,
    /// What reserve, charge, payout and notify were answered, in this order.
    pub receipts: Vec<String>,
    /// Which version of the demo finished it.
    pub written_by: String,
}

const INSERT: &str = "INSERT INTO demo.receipt
    (queue, task, order_id, reservation, charge, payout, notification, epoch, written_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Writes the row and completes the task, both or neither.
pub(super) async fn complete<P: Progress>(
    ctx: &TaskContext<P>,
    order_id: String,
    receipts: Vec<String>,
    written_by: &'static str,
) -> Result<Receipt, TaskError> {
    let (queue, task, epoch) = (ctx.queue().to_owned(), ctx.task_id(), ctx.epoch());
    ctx.complete_in(move |tx| {
        Box::pin(async move {
            let receipt = |n: usize| receipts.get(n).cloned().unwrap_or_default();
            let (reserved, charged, paid, told) = (receipt(0), receipt(1), receipt(2), receipt(3));
            tx.execute(
                INSERT,
                &[
                    &queue,
                    &task,
                    &order_id,
                    &reserved,
                    &charged,
                    &paid,
                    &told,
                    &epoch,
                    &written_by,
                ],
            )
            .await?;
            Ok(Receipt {
                order_id,
                receipts,
                written_by: written_by.to_owned(),
            })
        })
    })
    .await
}
