//! Handlers whose one operation is described by a function, and the services that stand behind.

use std::time::Duration;

use aegis_harness::{Effects, Explore, Harness, NewTask, Report};
use aegis_worker::{CallError, Class, OperationCall, TaskContext, TaskError, TaskHandler};
use serde_json::Value;

/// Charges a card by one operation of a class, at a service that behaves as the class says.
pub(crate) struct Charge {
    pub(crate) class: Class,
    pub(crate) bank: Effects,
}

impl Charge {
    fn call(&self, call: &OperationCall) -> Result<String, CallError> {
        let receipt = || "receipt".to_owned();
        match self.class {
            Class::Idempotent => self.bank.once(call, receipt),
            Class::Fenced => self.bank.fenced(call, receipt),
            _ => self.bank.each_time(call, receipt),
        }
    }
}

impl TaskHandler for Charge {
    const KIND: &'static str = "charge";
    type Input = u64;
    type Output = String;
    type Checkpoint = ();

    async fn run(&self, ctx: TaskContext<()>, order: u64) -> Result<String, TaskError> {
        let text: String = ctx
            .step("text", order, || async { Ok(format!("order {order}")) })
            .await?;
        let operation = ctx
            .operation("charge", order)
            .class(self.class)
            .timeout(Duration::from_secs(5))
            .request(&text);
        let call = |call| async move { self.call(&call) };
        let receipt: String = if self.class == Class::Queryable {
            operation
                .probe(|call| async move { Ok(self.bank.probe(&call)) })
                .execute(call)
                .await?
        } else {
            operation.execute(call).await?
        };
        Ok(format!("{text}: {receipt}"))
    }
}

/// A harness over one handler that is made of a function.
macro_rules! harness {
    (|$effects:ident| $handler:expr) => {
        aegis_harness::Harness::start(move |worker, effects| {
            let $effects = effects.clone();
            worker.handler($handler)
        })
        .await
        .unwrap()
    };
}
pub(crate) use harness;

/// Explores a kind with an input.
pub(crate) async fn explore(harness: &mut Harness, kind: &str, input: Value) -> Report {
    let task = NewTask::new(kind, input.to_string());
    harness.explore(task, &Explore::new()).await.unwrap()
}
