//! The verifier over a record that a real service wrote: the honest one passes, the doubling one is found.

use aegis_demo::payments::Effect;
use aegis_demo::verify::{
    BreachKind, EngineFacts, Judgement, OperationFact, OperationState, Record, Submission,
    TaskFact, TaskState, Verdict, judge, read_record,
};

use crate::support::{RUN, call, start};

async fn verdict_of(doubles: bool) -> Verdict {
    let service = start(|options| options.doubles = doubles).await;
    let mut facts = EngineFacts {
        run: Some(RUN.into()),
        ..EngineFacts::default()
    };
    for order in (0..100).map(|n| format!("O-{n}")) {
        let task = format!("task-{order}");
        facts.submissions.push(Submission {
            key: order.clone(),
            task: task.clone(),
        });
        for effect in Effect::ALL {
            let sent = call(effect, &order);
            service.post(&sent).await;
            facts.operations.push(OperationFact {
                id: sent.operation,
                task: task.clone(),
                name: effect.name().into(),
                class: effect.class(),
                state: OperationState::Succeeded,
                was_unknown: false,
                resolutions: 0,
                said_not_happened: 0,
            });
        }
        facts.receipts.push(task.clone());
        facts.tasks.push(TaskFact {
            id: task,
            state: TaskState::Succeeded,
            epoch: 1,
            error_code: None,
            order_is_good: true,
        });
    }
    // While the service still runs, the record is not whole and proves nothing.
    let early = judge(&facts, &read_record(&service.record));
    assert_ne!(early.verdict, Judgement::Pass);
    let mut record = Record::default();
    service.stop_and(|path| record = read_record(path)).await;
    judge(&facts, &record)
}

#[tokio::test]
async fn an_honest_service_passes() {
    let verdict = verdict_of(false).await;
    assert_eq!(
        (verdict.verdict, verdict.exit_code()),
        (Judgement::Pass, 0),
        "{verdict:#?}"
    );
    assert_eq!(verdict.counts.effects_applied, 400);
}

#[tokio::test]
async fn a_doubling_service_is_found() {
    let verdict = verdict_of(true).await;
    assert_eq!((verdict.verdict, verdict.exit_code()), (Judgement::Fail, 1));
    assert!(verdict.counts.effects_duplicated > 0);
    assert!(
        verdict
            .breaches
            .iter()
            .all(|breach| breach.kind == BreachKind::EffectDuplicated),
        "{verdict:#?}"
    );
}
