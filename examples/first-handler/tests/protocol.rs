//! The next release takes over what this one has begun.

use std::sync::atomic::{AtomicU32, Ordering};

use aegis_harness::{Cut, Effects, Fault, Harness, NewTask, Outcome, Point};
use aegis_worker::{CallError, OperationCall};
use first_handler::{Bank, Charge, ChargeCard, Order, v2};

struct TestBank(Effects);

impl Bank for TestBank {
    async fn charge(&self, call: &OperationCall, charge: &Charge) -> Result<String, CallError> {
        self.0.once(call, || format!("{} cents", charge.cents))
    }
}

/// The first worker is of release 1 and dies at the step; all that come after it are of release 2.
async fn handed_over(cut: Cut) {
    let workers = AtomicU32::new(0);
    let mut harness = Harness::start(move |worker, effects| {
        let bank = TestBank(effects.clone());
        match workers.fetch_add(1, Ordering::SeqCst) {
            0 => worker.handler(ChargeCard { bank }),
            _ => worker.handler(v2::ChargeCard { bank }),
        }
    })
    .await
    .unwrap();
    let (id, cents, items) = ("7".to_owned(), 500, 3);
    let task = NewTask::json("charge-card", &Order { id, cents, items }).unwrap();
    let dies = Fault::crash(Point::step("sum", 7, cut));
    let run = harness.run_with(task, &[dies]).await.unwrap();
    assert_eq!(run.outcome, Outcome::Succeeded);
    assert_eq!(run.result_as::<String>().unwrap(), "1500 cents");
}

#[tokio::test]
async fn release_2_reads_an_order_of_release_1() {
    handed_over(Cut::Before).await;
}

#[tokio::test]
async fn release_2_reads_a_step_of_release_1() {
    handed_over(Cut::Stored).await;
}
