//! Observing: looks are kept while the attempt is under way, sources from elsewhere count each by itself.

use aegis_migrate::contract::attempt::{Attempt, AttemptError};
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::judge;
use aegis_migrate::contract::look::{self, Seen};
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::observe;
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::contract::verbs;
use jiff::{SignedDuration, Timestamp};

use super::shop::{ID, Shop, id};

const DROP: &str = "ALTER TABLE users DROP COLUMN name;\n";

async fn closed(fact: &str) -> Shop {
    let shop = Shop::expanded_with(DROP, fact).await;
    shop.move_switch().await;
    shop.pass("agrees", 0).await;
    let mut held = shop.held().await;
    verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
        .await
        .unwrap();
    held.release().await;
    shop
}

async fn fact(shop: &Shop, need: Need) -> (Fact, Timestamp) {
    let subject = Subject::of(&shop.set.changes[&id()]).unwrap();
    let attempt = shop.attempt().await;
    let facts = judge::facts(&shop.db.admin, &subject, &attempt, &shop.keyring())
        .await
        .unwrap();
    let found = facts.into_iter().find(|fact| fact.need == need);
    (found.unwrap(), attempt.now)
}

#[tokio::test]
async fn each_look_is_kept_also_one_that_failed_and_none_after_the_attempt() {
    let shop = closed("workers").await;
    let subject = Subject::of(&shop.set.changes[&id()]).unwrap();
    let mut client = shop.db.connect().await;
    let seen = observe::sample(&mut client, &subject).await.unwrap();
    let needs: Vec<Need> = seen.iter().map(|(need, _)| *need).collect();
    // There is no engine in this database, so its workers are not looked at.
    assert_eq!(needs, [Need::Sightings, Need::Clients]);
    assert!(
        seen.iter().all(|(_, one)| one.holds == Some(true)),
        "{seen:?}"
    );
    let (workers, now) = fact(&shop, Need::Workers).await;
    assert_eq!(workers.standing, Standing::Missing);
    assert!(workers.blocks(now).is_some());

    shop.sql("ALTER TABLE aegis_migrate.sighting RENAME COLUMN side TO other")
        .await;
    let seen = observe::sample(&mut client, &subject).await.unwrap();
    assert_eq!(seen[0].1.holds, None, "{seen:?}");
    assert_eq!(seen[1].1.holds, Some(true), "{seen:?}");
    let kept = "SELECT count(*) FROM aegis_migrate.contract_look WHERE holds IS NULL";
    assert_eq!(shop.number(kept).await, 1);
    shop.sql("ALTER TABLE aegis_migrate.sighting RENAME COLUMN other TO side")
        .await;

    let mut held = shop.held().await;
    verbs::reopen(&mut held, &id(), "a test").await.unwrap();
    held.release().await;
    let ended = observe::sample(&mut client, &subject).await.unwrap_err();
    assert!(matches!(ended, AttemptError::NotClosed { .. }), "{ended}");
    let looks = "SELECT count(*) FROM aegis_migrate.contract_look";
    assert_eq!(shop.number(looks).await, 4);
    shop.end().await;
}

#[tokio::test]
async fn each_source_from_elsewhere_must_hold_for_the_whole_time_and_be_fresh() {
    let shop = closed("pods").await;
    let attempt = shop.attempt().await;
    assert_eq!(fact(&shop, Need::Pods).await.0.standing, Standing::Missing);
    let keep = async |attempt: &Attempt, source: &str, ago_s: i64, holds| {
        let seen = Seen {
            holds,
            detail: "no Pod of r1".to_owned(),
        };
        let at = attempt.now - SignedDuration::from_secs(ago_s);
        look::keep(&shop.db.admin, attempt, Need::Pods, source, Some(at), &seen)
            .await
            .unwrap();
    };
    for ago_s in [250, 0] {
        keep(&attempt, "bundle of eye from eu-1/shop", ago_s, Some(true)).await;
    }
    let (one, now) = fact(&shop, Need::Pods).await;
    assert_eq!(
        (one.standing.clone(), one.blocks(now)),
        (Standing::Shown, None)
    );
    // A second cluster, which has not been heard of for longer than a bundle may be old.
    for ago_s in [900, 700, 500] {
        keep(&attempt, "bundle of eye from us-1/shop", ago_s, Some(true)).await;
    }
    let (two, now) = fact(&shop, Need::Pods).await;
    assert!(
        two.source.contains("us-1") && two.blocks(now).unwrap().why.contains("stale"),
        "{two:?}"
    );
    keep(&attempt, "bundle of eye from us-1/shop", 0, Some(false)).await;
    assert_eq!(fact(&shop, Need::Pods).await.0.standing, Standing::Refuted);
    // Nobody answers against what was seen.
    shop.sql(&format!(
        "INSERT INTO aegis_migrate.contract_attestation (change, attempt, need, by_whom, until, reason, envelope)
         VALUES ('{ID}', 1, 'pods', 'bo', clock_timestamp() + interval '1 hour', 'x', '{{}}')"
    ))
    .await;
    assert_eq!(fact(&shop, Need::Pods).await.0.standing, Standing::Refuted);
    shop.end().await;
}

#[tokio::test]
async fn three_days_of_looks_are_judged_in_seconds() {
    let shop = closed("workers").await;
    shop.sql("INSERT INTO aegis_migrate.contract_look (change, attempt, need, at, source, holds, detail)
             SELECT c.change, c.attempt, need, clock_timestamp() - make_interval(secs => 10 * n), 'target', true, 'none'
             FROM aegis_migrate.contract c, unnest(ARRAY['sightings', 'clients']) need, generate_series(0, 25919) n")
        .await;
    let began = std::time::Instant::now();
    let (clients, now) = fact(&shop, Need::Clients).await;
    let took = began.elapsed();
    println!("{took:?}");
    assert_eq!(clients.blocks(now), None);
    // `contract observe` judges about every 12 minutes of them.
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    shop.end().await;
}
