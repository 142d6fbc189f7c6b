//! Charges a card for an order, once.

use std::time::Duration;

use aegis_worker::{CallError, Class, OperationCall, TaskContext, TaskError, TaskHandler};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub cents: u64,
    pub items: u32,
}

/// What the bank is asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Charge {
    pub order: String,
    pub cents: u64,
}

/// The bank's client: a trait, so that tests can have a bank of their own.
pub trait Bank: Send + Sync + 'static {
    fn charge(
        &self,
        call: &OperationCall,
        charge: &Charge,
    ) -> impl Future<Output = Result<String, CallError>> + Send;
}

pub struct ChargeCard<B> {
    pub bank: B,
}

impl<B: Bank> TaskHandler for ChargeCard<B> {
    const KIND: &'static str = "charge-card";
    type Input = Order;
    type Output = String;
    type Checkpoint = ();

    async fn run(&self, ctx: TaskContext<()>, order: Order) -> Result<String, TaskError> {
        // Remembered: a later attempt gets this sum, also from a release that would reckon otherwise.
        let cents: u64 = ctx.step("sum", &order.id, || async { sum(&order) }).await?;
        let charge = Charge {
            order: order.id.clone(),
            cents,
        };
        // A side effect: committed as dispatched before it leaves, under an id that never changes.
        let receipt = ctx
            .operation("charge", &order.id)
            .class(Class::Idempotent)
            .key_retention(Duration::from_hours(24))
            .request(&charge)
            .execute(|call| {
                let charge = &charge;
                async move { self.bank.charge(&call, charge).await }
            })
            .await?;
        Ok(receipt)
    }
}

fn sum(order: &Order) -> Result<u64, TaskError> {
    order
        .cents
        .checked_mul(order.items.into())
        .ok_or_else(|| TaskError::terminal("too_dear", "the sum is beyond all banks"))
}

pub mod v2;
