//! SQL mutants: each guarded statement, the acquire call and the functions that they ask, with one mistake, must be noticed.
//!
//! Nothing is compiled for a mutant: a statement's text is replaced on its way to the server, a function in the test's own
//! database. What survives stands in `survivors.txt` with its reason; a survivor too many or too few fails the test.
//! `make mutants` judges the rest of the acquire call, renewal, housekeeping and the functions that end an attempt too, and prints
//! the score.

mod checks;
mod choosing;
mod claims;
mod ending;
mod make;
mod reaping;
mod rewritten;
mod scenes;

use std::collections::BTreeMap;

use aegis_store::generated::{task, worker};
use aegis_store::session::Statement;
use tokio_postgres::Client;

use checks::{Bench, Under};
use choosing::Choosing;
use claims::Claims;
use ending::Ending;
use reaping::Reaping;

const STATEMENTS: [&Statement; 7] = [
    &task::COMPLETE,
    &task::CHECKPOINT,
    &task::DISPATCH,
    &task::FAIL,
    &task::RELEASE,
    &task::SETTLE,
    &task::STEP,
];

/// The last line of `include/guard.sql`.
const GUARD_ENDS: &str = "FROM (SELECT count(*) AS n FROM l) x WHERE x.n > 0)";

/// The functions that decide for the guard and for the ledger, and a statement that asks each.
const DECIDING: [(&str, &[&str]); 4] = [
    ("lease_live", &["task/complete"]),
    ("lineage_is", &["task/complete"]),
    ("lineage", &["task/complete"]),
    ("operation_is_open", &["task/dispatch"]),
];

/// The functions that end an attempt.
const ENDING: [&str; 6] = [
    "end_attempt",
    "fail_attempt",
    "conclude",
    "end_operations",
    "doubt_operations",
    "quiet_operations",
];

/// The functions that take tasks back or make them ready.
const HOUSEKEEPING: [&str; 4] = ["expire_workers", "reap", "why_lost", "promote"];

/// Each mutant and the check that noticed it, if one did.
#[derive(Default)]
struct Score {
    verdicts: BTreeMap<String, Option<String>>,
    /// What the server does not even parse proves nothing.
    no_sql: Vec<String>,
}

impl Score {
    fn survivors(&self) -> Vec<&str> {
        let survivors = self
            .verdicts
            .iter()
            .filter(|(_, noticed)| noticed.is_none());
        survivors.map(|(name, _)| name.as_str()).collect()
    }

    /// A line for each mutant, and the score.
    fn told(&self) -> String {
        let noticed = self.verdicts.iter().map(|(name, noticed)| {
            let noticed = noticed.as_deref().unwrap_or("SURVIVES");
            format!("{name}: {noticed}\n")
        });
        let no_sql = self
            .no_sql
            .iter()
            .map(|name| format!("{name}: is no SQL\n"));
        let lines: String = noticed.chain(no_sql).collect();
        let (all, survive) = (self.verdicts.len(), self.survivors().len());
        let no_sql = self.no_sql.len();
        format!(
            "{lines}mutants: {} of {all} noticed, {no_sql} more are no SQL",
            all - survive
        )
    }

    /// Fails unless just what is known to survive does; `part` tells what of the list belongs here.
    fn check(&self, list: &'static str, part: impl Fn(&str) -> bool) {
        assert!(!self.verdicts.is_empty(), "no mutant was made");
        let mut survivors = self.survivors();
        survivors.retain(|name| part(name));
        let known: Vec<&str> = known(list).into_iter().filter(|name| part(name)).collect();
        let more: Vec<_> = survivors
            .iter()
            .filter(|name| !known.contains(name))
            .collect();
        let less: Vec<_> = known
            .iter()
            .filter(|name| !survivors.contains(name))
            .collect();
        assert!(
            more.is_empty() && less.is_empty(),
            "nobody notices {more:#?}; in the list, but noticed or no longer made: {less:#?}"
        );
    }
}

/// What is known to survive, each with a reason in the list.
fn known(list: &'static str) -> Vec<&'static str> {
    let lines = list.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(" -- ") {
            Some((mutant, reason)) if reason.len() > 10 => mutant,
            _ => panic!("the list gives no reason: {line}"),
        })
        .collect()
}

async fn parses(client: &Client, text: &str, statement: &Statement) -> bool {
    client.prepare_typed(text, statement.types).await.is_ok()
}

async fn judge_statements(bench: &Bench, score: &mut Score) {
    for statement in STATEMENTS {
        let own = Under {
            statement: statement.name,
            text: None,
        };
        assert_eq!(bench.notice(own).await, None, "{} itself", statement.name);
        let text = statement.texts[0];
        let rest = text.find(GUARD_ENDS).unwrap() + GUARD_ENDS.len();
        for mutant in make::mutants(text) {
            // The guard is one text in all of them: a mistake in it is one mistake, and who notices first is enough.
            let of = if mutant.at < rest {
                "guard"
            } else {
                statement.name
            };
            let name = format!("{of}: {}", mutant.what);
            if score.verdicts.get(&name).is_some_and(Option::is_some) {
                continue;
            }
            if !parses(&bench.table.bed.db.admin, &mutant.text, statement).await {
                score.no_sql.push(name);
                continue;
            }
            let text = Some(mutant.text.as_str());
            let noticed = bench.notice(Under { text, ..own }).await;
            score.verdicts.insert(name, noticed);
        }
    }
}

/// The mutants of a function, each as SQL that puts it in the place of the function; and SQL that puts the function back.
async fn function_mutants(admin: &Client, name: &str) -> (Vec<(String, String)>, String) {
    let own = format!("select pg_get_functiondef('aegis.{name}'::regproc)");
    let own: String = checks::one(admin, &own).await;
    let parts: Vec<&str> = own.split("$function$").collect();
    let [head, body, _] = parts[..] else {
        panic!("{name} is no function with a body: {own}");
    };
    let whole = |head: &str, body: &str| format!("{head}$function${body}$function$");
    let mut mutants: Vec<(String, String)> = make::mutants(body)
        .into_iter()
        .map(|one| {
            (
                format!("aegis.{name}: {}", one.what),
                whole(head, &one.text),
            )
        })
        .collect();
    if head.contains(" STABLE") {
        let volatile = whole(&head.replace(" STABLE", " VOLATILE"), body);
        mutants.push((format!("aegis.{name}: is VOLATILE"), volatile));
    } else if let Some(start) = head.strip_suffix("AS ") {
        let stable = whole(&format!("{start}STABLE AS "), body);
        mutants.push((format!("aegis.{name}: is STABLE"), stable));
    }
    (mutants, own)
}

async fn judge_function(bench: &Bench, name: &str, by: &[&'static str], score: &mut Score) {
    let admin = &bench.table.bed.db.admin;
    let (mutants, own) = function_mutants(admin, name).await;
    for &statement in by {
        let under = Under {
            statement,
            text: None,
        };
        assert_eq!(bench.notice(under).await, None, "{statement} itself");
    }
    for (mutant, text) in mutants {
        if admin.batch_execute(&text).await.is_err() {
            score.no_sql.push(mutant);
            continue;
        }
        let mut noticed = None;
        for &statement in by {
            if noticed.is_none() {
                let under = Under {
                    statement,
                    text: None,
                };
                noticed = bench.notice(under).await;
            }
        }
        score.verdicts.insert(mutant, noticed);
    }
    bench.table.bed.sql(&own).await;
}

/// What `make mutants` judges beyond the suite: all, or only what `AEGIS_MUTANTS` names, such as `worker/renew,aegis.reap`.
fn wanted(group: &str) -> bool {
    std::env::var("AEGIS_MUTANTS").is_ok_and(|named| named.split(',').any(|one| one == group))
        || std::env::var("AEGIS_MUTANTS").is_err()
}

/// Whether a mutant's group was judged in this run.
fn judged(name: &str) -> bool {
    wanted(name.split(": ").next().unwrap_or(name))
}

/// Judges renewal and the functions of housekeeping.
async fn judge_reaping(score: &mut Score) {
    let mut reaping = Reaping::new().await;
    assert_eq!(reaping.notice(None).await, None, "housekeeping itself");
    let renewal = wanted("worker/renew").then_some(worker::RENEW.texts[0]);
    for mutant in renewal.into_iter().flat_map(make::mutants) {
        let name = format!("worker/renew: {}", mutant.what);
        if parses(&reaping.bed.db.admin, &mutant.text, &worker::RENEW).await {
            let noticed = reaping.notice(Some(&mutant.text)).await;
            score.verdicts.insert(name, noticed);
        } else {
            score.no_sql.push(name);
        }
    }
    for name in HOUSEKEEPING {
        if !wanted(&format!("aegis.{name}")) {
            continue;
        }
        let (mutants, own) = function_mutants(&reaping.bed.db.admin, name).await;
        for (mutant, text) in mutants {
            if reaping.bed.db.admin.batch_execute(&text).await.is_err() {
                score.no_sql.push(mutant);
                continue;
            }
            let noticed = reaping.notice(None).await;
            score.verdicts.insert(mutant, noticed);
        }
        reaping.bed.sql(&own).await;
    }
}

/// Judges the functions that end an attempt.
async fn judge_ending(score: &mut Score) {
    let mut ending = Ending::new().await;
    assert_eq!(ending.notice().await, None, "the first look");
    assert_eq!(ending.notice().await, None, "the functions themselves");
    for name in ENDING {
        if !wanted(&format!("aegis.{name}")) {
            continue;
        }
        let (mutants, own) = function_mutants(&ending.bed.db.admin, name).await;
        for (mutant, text) in mutants {
            if ending.bed.db.admin.batch_execute(&text).await.is_err() {
                score.no_sql.push(mutant);
                continue;
            }
            let noticed = ending.notice().await;
            score.verdicts.insert(mutant, noticed);
        }
        ending.bed.sql(&own).await;
    }
}

/// Judges the acquire call's mutants that begin in `part` of its text.
async fn judge_acquire(part: impl Fn(usize, &str) -> bool, worlds: usize, score: &mut Score) {
    let mut claims = Claims::new().await;
    let mut choosing = Choosing::new(worlds).await;
    assert_eq!(claims.notice(None).await, None, "acquire itself");
    assert_eq!(choosing.notice(None).await, None, "the first look");
    assert_eq!(choosing.notice(None).await, None, "acquire itself");
    // The text for ten.
    let text = task::ACQUIRE.texts[1];
    for mutant in make::mutants(text) {
        if !part(mutant.at, text) {
            continue;
        }
        let name = format!("task/acquire: {}", mutant.what);
        if !parses(&claims.bed.db.admin, &mutant.text, &task::ACQUIRE).await {
            score.no_sql.push(name);
            continue;
        }
        let noticed = match claims.notice(Some(&mutant.text)).await {
            Some(noticed) => Some(noticed),
            None => choosing.notice(Some(&mutant.text)).await,
        };
        score.verdicts.insert(name, noticed);
    }
}

/// The gate, the lock and the write of an acquire call; what is between chooses, and takes nothing that is not free.
fn takes(at: usize, text: &str) -> bool {
    let takes = text.find("\nc AS").unwrap()..text.find("\nSELECT v.id").unwrap();
    at < text.find("\ncap AS").unwrap() || takes.contains(&at)
}

#[tokio::test]
async fn every_mutant_of_the_guard_is_noticed_or_has_its_reason() {
    let bench = Bench::new().await;
    let mut score = Score::default();
    judge_statements(&bench, &mut score).await;
    for (name, by) in DECIDING {
        judge_function(&bench, name, by, &mut score).await;
    }
    println!("{}", score.told());
    score.check(include_str!("survivors.txt"), |name| {
        !name.starts_with("task/acquire: ")
    });
}

#[tokio::test]
async fn every_mutant_of_the_gate_of_a_claim_is_noticed_or_has_its_reason() {
    let mut score = Score::default();
    judge_acquire(takes, 1, &mut score).await;
    println!("{}", score.told());
    score.check(include_str!("survivors.txt"), |name| {
        name.starts_with("task/acquire: ")
    });
}

#[tokio::test]
#[ignore = "minutes, and a score for people to read: `make mutants`"]
async fn the_score_of_what_chooses_and_what_ends() {
    let mut score = Score::default();
    if wanted("task/acquire") {
        judge_acquire(|at, text| !takes(at, text), usize::MAX, &mut score).await;
    }
    judge_reaping(&mut score).await;
    judge_ending(&mut score).await;
    println!("{}", score.told());
    score.check(include_str!("survivors_deep.txt"), judged);
}
