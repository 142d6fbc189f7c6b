//! The orders of the demo: reading them from a CSV file, and judging each field of one.
//!
//! A record that is no record (wrong number of fields, no order id) is refused when the file is read. A record
//! that is one but holds a bad value is still an order: it becomes a task and fails in its `validate` step, where
//! everybody can see why. A repeated order id is not judged here: it is the same idempotency key, and the engine
//! says whether it is the same order or a conflict. Must never guess or repair a value.

mod check;
mod file;

pub use check::{Bank, Currency, FieldError, InvalidOrder, MAX_AMOUNT_MAJOR, ValidOrder};
pub use file::{OrdersError, OrdersFile, RefusedRow, parse, read};

use serde::{Deserialize, Serialize};

/// The code of the terminal error with which a task's `validate` step fails a bad order.
pub const CODE_BAD_ORDER: &str = "order_invalid";

/// One order as it was written in the file, not yet judged: the input of a task.
///
/// The line is not part of what is submitted: an order sent twice must be the same payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The idempotency key of the task, for example `O-1001`.
    pub order_id: String,
    /// Who ordered; must not be empty.
    pub customer: String,
    /// Where the notification goes.
    pub email: String,
    /// What was ordered; must not be empty.
    pub item: String,
    /// A decimal number in major units, with the digits that the currency has.
    pub amount: String,
    /// Three letters, for example `EUR`.
    pub currency: String,
    /// Which bank charges: `northbank` or `quickbank`.
    pub bank: String,
    /// The line of the file, when it was read from one.
    #[serde(skip)]
    pub line: Option<u64>,
}

impl OrdersFile {
    /// The orders as (first of each id, later ones with an id that was seen): the first are submitted as a batch,
    /// each of the others by itself, so that a conflict refuses that one only.
    pub fn split_repeats(&self) -> (Vec<&Order>, Vec<&Order>) {
        let mut seen = std::collections::HashSet::new();
        self.orders
            .iter()
            .partition(|order| seen.insert(order.order_id.as_str()))
    }
}
