//! The questions about readers over a million live tasks, beside a bare `count(*)` of their table in the same run.
//!
//! The table: 400 lanes of 100 kinds; 70.56 % ready, 17.64 % scheduled, 7.84 % waiting, 1.96 % reconciling, 2 % running under 50 workers of
//! two releases; 20,000 parked ones beside them; 500 incarnations that have ended.

use std::time::Instant;

use aegis_store::Store;
use aegis_store::lane_check::{Answer, Leaver, RollBack};

use crate::setting::Setting;
use crate::{Figures, figure, median, quantile};

/// Looks at each question and at the count, in turns, after two that warm both.
const ROUNDS: usize = 21;

/// Fills, asks, and empties again.
pub(crate) async fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    setting
        .client()
        .batch_execute(include_str!("../sql/lane_check.sql"))
        .await?;
    setting.tidy_up().await?;
    setting
        .client()
        .batch_execute("VACUUM (ANALYZE) aegis.parked")
        .await?;
    let store = setting.store(2).await?;
    let mut count_ms = Vec::new();
    let mut asked_ms = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS + 2 {
        let begun = Instant::now();
        let row = setting
            .client()
            .query_one("SELECT count(*) FROM aegis.task", &[])
            .await?;
        let counted = begun.elapsed().as_secs_f64() * 1000.0;
        anyhow::ensure!(
            row.try_get::<_, i64>(0)? == 1_000_000,
            "not a million tasks"
        );
        for (question, into) in asked_ms.iter_mut().enumerate() {
            let begun = Instant::now();
            let answer = ask(&store, question).await?;
            let took = begun.elapsed().as_secs_f64() * 1000.0;
            anyhow::ensure!(
                answer == EXPECTED[question],
                "{}: {answer}",
                NAMES[question]
            );
            if round >= 2 {
                into.push(took);
            }
        }
        if round >= 2 {
            count_ms.push(counted);
        }
    }
    let bare = median(&mut count_ms);
    let mut figures = vec![figure("count_of_1e6_tasks_ms", bare)];
    for (mut asked, name) in asked_ms.into_iter().zip(NAMES) {
        let middle = median(&mut asked);
        figures.push(figure(&format!("lane_check_{name}_ms"), middle));
        figures.push(figure(
            &format!("lane_check_{name}_max_ms"),
            quantile(&mut asked, 1.0),
        ));
        figures.push(figure(
            &format!("lane_check_{name}_vs_count"),
            middle / bare,
        ));
    }
    setting
        .client()
        .batch_execute("TRUNCATE aegis.task, aegis.parked, aegis.worker, aegis.worker_lease, aegis.worker_capability")
        .await?;
    Ok(figures)
}

const NAMES: [&str; 4] = ["retire_yes", "retire_no", "roll_back_no", "stranded_no"];
const EXPECTED: [&str; 4] = ["yes", "no", "no", "no"];

async fn ask(store: &Store, question: usize) -> anyhow::Result<&'static str> {
    let release = |id: &str| Leaver::Release(id.to_owned());
    let checked = match question {
        // `check-2` reads all that `check-1` reads.
        0 => store.may_retire(&release("check-1"), 20).await?,
        // Nobody else reads three quarters of the lanes.
        1 => store.may_retire(&release("check-2"), 20).await?,
        2 => {
            let back = RollBack {
                to: Some("check-1".to_owned()),
                ..RollBack::default()
            };
            store.may_roll_back(&back, 20).await?
        }
        // Two kinds have no worker.
        _ => store.all_read(20).await?,
    };
    Ok(match checked.answer {
        Answer::Yes => "yes",
        Answer::No(_) => "no",
        Answer::Unknown(_) => "unknown",
    })
}
