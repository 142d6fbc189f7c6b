//! Looks at who still needs the old form: old sessions are seen and hidden ones are not taken for none; the engine's workers and
//! tasks only where there is an engine.

use std::time::Duration;

use aegis_migrate::contract::attempt;
use aegis_migrate::contract::look;
use aegis_migrate::contract::need::Need;

use super::Target;

#[tokio::test]
async fn a_session_from_before_the_door_was_shut_is_seen_until_it_ends() {
    let target = Target::new().await;
    let old_session = target.db.connect_as(&target.rw).await;
    old_session
        .batch_execute("SET application_name = 'shop/1'")
        .await
        .unwrap();
    let attempt = attempt::close(&target.db.admin, "split", None, "ana", "r2")
        .await
        .unwrap();
    let newer = target.db.connect_as(&target.rw).await;
    let roles = vec![target.rw.clone()];
    let seen = look::clients(&target.db.admin, &roles, attempt.closed_at)
        .await
        .unwrap();
    assert_eq!(seen.holds, Some(false));
    assert!(
        seen.detail.contains("1 of") && seen.detail.contains("shop/1"),
        "{}",
        seen.detail
    );

    // Who may not see another role's session must not say that there is none.
    let observer = target.db.connect_as(&target.ro).await;
    let blind = look::clients(&observer, &roles, attempt.closed_at)
        .await
        .unwrap();
    assert_eq!(blind.holds, None, "{}", blind.detail);

    drop(old_session);
    aegis_testkit::wait_until(
        "the old session is gone",
        Duration::from_secs(20),
        async || {
            look::clients(&target.db.admin, &roles, attempt.closed_at)
                .await
                .unwrap()
                .holds
                == Some(true)
        },
    )
    .await;
    drop((newer, observer));
    target.end().await;
}

#[tokio::test]
async fn workers_and_tasks_are_seen_only_where_an_engine_is() {
    let target = Target::new().await;
    let at = jiff::Timestamp::now();
    assert_eq!(look::workers(&target.db.admin, at).await.unwrap(), None);
    assert_eq!(look::tasks(&target.db.admin, at).await.unwrap(), None);
    target.end().await;

    let engine = aegis_testkit::TestDb::new().await;
    assert_eq!(
        look::workers(&engine.admin, at)
            .await
            .unwrap()
            .unwrap()
            .holds,
        Some(true)
    );
    engine
        .admin
        .batch_execute(
            "INSERT INTO aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest, schema)
             VALUES (gen_random_uuid(), 1, 1, '2026-01-01', 'w', 'h', 'r1', 'b', 'd', 10)",
        )
        .await
        .unwrap();
    let seen = look::workers(&engine.admin, at).await.unwrap().unwrap();
    assert_eq!(seen.holds, Some(false));
    assert!(seen.detail.contains("1 of release r1"), "{}", seen.detail);
    assert_eq!(
        look::tasks(&engine.admin, at).await.unwrap().unwrap().holds,
        Some(true)
    );
}

#[tokio::test]
async fn looks_are_kept_by_source_and_the_same_bundle_counts_once() {
    let target = Target::new().await;
    let client = &target.db.admin;
    let attempt = attempt::close(client, "split", None, "ana", "r2")
        .await
        .unwrap();
    let seen = look::Seen {
        holds: Some(true),
        detail: "none".to_owned(),
    };
    let at = Some("2026-11-30T10:00:00Z".parse().unwrap());
    for source in [
        "bundle of eye from eu-1/shop",
        "bundle of eye from us-1/shop",
    ] {
        for _ in 0..2 {
            look::keep(client, &attempt, Need::Pods, source, at, &seen)
                .await
                .unwrap();
        }
    }
    look::keep(client, &attempt, Need::Clients, look::TARGET, None, &seen)
        .await
        .unwrap();
    let pods = look::looks(client, &attempt, Need::Pods).await.unwrap();
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|(_, looks)| looks.len() == 1));
    target.end().await;
}
