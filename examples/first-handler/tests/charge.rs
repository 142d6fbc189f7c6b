//! The handler survives a crash at every point, and the card is charged once.

use aegis_harness::{Cut, Effects, Explore, Fault, Harness, NewTask, Point};
use aegis_worker::{CallError, OperationCall};
use first_handler::{Bank, Charge, ChargeCard, Order};

/// A bank that knows idempotency keys, and writes down what has really happened.
struct TestBank(Effects);

impl Bank for TestBank {
    async fn charge(&self, call: &OperationCall, charge: &Charge) -> Result<String, CallError> {
        self.0.once(call, || format!("{} cents", charge.cents))
    }
}

async fn harness() -> Harness {
    Harness::start(|worker, effects| {
        let bank = TestBank(effects.clone());
        worker.handler(ChargeCard { bank })
    })
    .await
    .unwrap()
}

fn order() -> NewTask {
    let (id, cents, items) = ("7".to_owned(), 500, 3);
    NewTask::json("charge-card", &Order { id, cents, items }).unwrap()
}

#[tokio::test]
async fn a_crash_anywhere_charges_once() {
    let mut harness = harness().await;
    let report = harness.explore(order(), &Explore::new()).await.unwrap();
    println!("{report}");
    report.assert_safe();
}

#[tokio::test]
async fn the_bank_is_asked_again_when_its_answer_was_lost() {
    let mut harness = harness().await;
    let dies = Fault::crash(Point::operation("charge", 7, Cut::Ran));
    let run = harness.run_with(order(), &[dies]).await.unwrap();
    assert_eq!(run.result_as::<String>().unwrap(), "1500 cents");
    assert_eq!(harness.effects().requests(), 2);
    assert_eq!(harness.effects().all().len(), 1);
}
