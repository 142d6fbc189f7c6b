//! The same handler a release later: an order has a currency now.
//!
//! In a crate of your own you would change the handler in its place.

use std::time::Duration;

use aegis_worker::{Class, Protocols, TaskContext, TaskError, TaskHandler};
use serde::{Deserialize, Serialize};

use crate::{Bank, Charge};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub sum: Money,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Money {
    pub cents: u64,
    pub currency: String,
}

pub struct ChargeCard<B> {
    pub bank: B,
}

impl<B: Bank> TaskHandler for ChargeCard<B> {
    const KIND: &'static str = "charge-card";
    type Input = Order;
    type Output = String;
    type Checkpoint = ();

    fn protocols(&self) -> Protocols {
        // Reads 1 and 2, and writes 2.
        Protocols::of::<1, 2, 2>()
            // {"id": "7", "cents": 500, "items": 3}
            .upcast_input(1, |old| {
                let number = |field: &str| old[field].as_u64().ok_or(format!("no {field}"));
                Ok(serde_json::json!({
                    "id": old["id"],
                    "sum": { "cents": number("cents")? * number("items")?, "currency": "EUR" },
                }))
            })
            // The value of the step: 1500
            .upcast_step(1, |old| {
                Ok(serde_json::json!({ "cents": old, "currency": "EUR" }))
            })
    }

    async fn run(&self, ctx: TaskContext<()>, order: Order) -> Result<String, TaskError> {
        let sum: Money = ctx
            .step("sum", &order.id, || async { Ok(order.sum.clone()) })
            .await?;
        let charge = Charge {
            order: order.id.clone(),
            cents: sum.cents,
        };
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
