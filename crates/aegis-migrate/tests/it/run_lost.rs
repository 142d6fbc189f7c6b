//! A connection that is lost at each kind of frame of a run: the exit code and the words say what was in the air, and the run after it
//! ends well.

use std::collections::BTreeSet;

use aegis_migrate::change::Phase;
use aegis_migrate::set::Set;
use aegis_testkit::TestDb;

use crate::proxy::{Frame, Place, Proxy, Sent};
use crate::run::ran;
use crate::run_cuts::{ran_through, stage, two_phases, whole};

/// What the files say: a statement of theirs was in the air.
const STATEMENTS: [&str; 4] = [
    "ALTER TABLE users ADD COLUMN a int",
    "INSERT INTO app.log (id) VALUES (1)",
    "CREATE INDEX CONCURRENTLY i ON app.users (name)",
    "INSERT INTO app.log (id) VALUES (2)",
];

/// As [`stage`] makes it, in the same database.
async fn staged_again(db: &TestDb) {
    db.admin
        .batch_execute(
            "DROP SCHEMA app, aegis_migrate CASCADE; CREATE SCHEMA app; CREATE TABLE app.users (id bigint PRIMARY KEY, name text);
             INSERT INTO app.users VALUES (1, 'Ada'); CREATE TABLE app.log (id int)",
        )
        .await
        .unwrap();
}

/// What a run of this phase sends when nothing is cut.
async fn frames(db: &TestDb, set: &Set, phase: Phase) -> Vec<Sent> {
    let proxy = Proxy::before(db, Frame::Any, 0, Place::After).await;
    ran_through(&proxy.config, set, phase).await.unwrap();
    proxy.sent()
}

/// What is cut once: each statement of the files, and of all else what begins with the same word in the same kind of message.
fn kind_of(frame: &Sent) -> Sent {
    let mut kind = frame.clone();
    if kind.kind == 'P' && kind.sql.contains("pg_catalog.") {
        "the catalog".clone_into(&mut kind.sql);
    } else if !STATEMENTS.contains(&kind.sql.trim_end_matches(';')) {
        let word = frame.sql.split_whitespace().next();
        word.unwrap_or_default().clone_into(&mut kind.sql);
    }
    kind
}

/// The number of the first frame of each kind.
fn kinds(frames: &[Sent], known: &mut BTreeSet<Sent>) -> Vec<usize> {
    let mut numbers = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let kind = kind_of(frame);
        if !kind.sql.is_empty() && known.insert(kind) {
            numbers.push(at + 1);
        }
    }
    numbers
}

/// Whether it is the COMMIT of a transaction that may have written.
fn writes(sent: &Sent, before: &[Sent]) -> bool {
    let begins = before.iter().rfind(|frame| {
        frame.sql.starts_with("START TRANSACTION") || frame.sql.starts_with("BEGIN")
    });
    sent.sql == "COMMIT" && begins.is_some_and(|begin| !begin.sql.contains("READ ONLY"))
}

async fn cut(db: &TestDb, set: &Set, phase: Phase, number: usize, place: Place) -> Sent {
    let proxy = Proxy::before(db, Frame::Any, number, place).await;
    let error = ran_through(&proxy.config, set, phase).await.unwrap_err();
    let mut frames = proxy.sent();
    let sent = frames.pop().unwrap();
    let what = format!("{number} {place:?} {sent:?}: {}", error.whole());
    let in_the_air = sent.kind == 'Q'
        && (writes(&sent, &frames) || STATEMENTS.contains(&sent.sql.trim_end_matches(';')));
    assert_eq!(
        error.exit_code(),
        if in_the_air { 15 } else { 17 },
        "{what}"
    );
    let words = error.whole().to_lowercase();
    for word in [
        "run again",
        if in_the_air {
            "next run"
        } else {
            "no commit was in the air"
        },
    ] {
        assert!(words.contains(word), "{word}: {what}");
    }
    ran(db, set, phase).await.unwrap();
    sent
}

#[tokio::test]
async fn a_lost_connection_has_one_code_for_what_was_in_the_air_and_one_for_the_rest() {
    let set = two_phases();
    let db = stage().await;
    let (mut known, mut cuts) = (BTreeSet::new(), Vec::new());
    for phase in [Phase::Expand, Phase::Migrate] {
        let frames = frames(&db, &set, phase).await;
        for number in kinds(&frames, &mut known) {
            cuts.push((phase, number));
        }
    }
    let mut met = BTreeSet::new();
    for (nth, (phase, number)) in cuts.into_iter().enumerate() {
        staged_again(&db).await;
        if phase == Phase::Migrate {
            ran(&db, &set, Phase::Expand).await.unwrap();
        }
        let place = if nth % 2 == 0 {
            Place::After
        } else {
            Place::Before
        };
        met.insert(cut(&db, &set, phase, number, place).await);
        if phase == Phase::Expand {
            ran(&db, &set, Phase::Migrate).await.unwrap();
        }
        whole(&db, &format!("{phase} {number} {place:?}")).await;
    }
    for statement in STATEMENTS {
        assert!(
            met.iter().any(|sent| sent.sql.starts_with(statement)),
            "{statement} was not cut"
        );
    }
    assert!(met.len() > 10, "only {} kinds of frames", met.len());
}
