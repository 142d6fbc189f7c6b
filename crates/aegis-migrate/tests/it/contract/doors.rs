//! Doors: only the old columns are lost, reopening gives back exactly what was taken, another path is named and nothing happens.

use aegis_migrate::contract::attempt::{self, Attempt, AttemptError};
use aegis_migrate::contract::door::{self, Door};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::Target;

fn old() -> Vec<String> {
    vec!["name".to_owned()]
}

async fn refused(client: &Client, sql: &str) -> bool {
    match client.batch_execute(sql).await {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(
                error.code(),
                Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "{error:?}"
            );
            true
        }
    }
}

/// Everything that anybody holds on the table and its columns.
async fn acls(target: &Target) -> String {
    target
        .db
        .admin
        .query_one(
            "SELECT concat((SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM pg_class c, unnest(c.relacl) a WHERE c.relname = 'users'), ' / ',
                (SELECT string_agg(concat(t.attname, ' ', a::text), ' ' ORDER BY t.attname, a::text) FROM pg_attribute t, unnest(t.attacl) a
                 WHERE t.attrelid = 'app.users'::regclass))",
            &[],
        )
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn a_shut_door_takes_the_old_columns_and_nothing_else_and_opens_as_it_was() {
    let target = Target::new().await;
    // A grant on one column beside the table's, and one that can be passed on.
    target
        .db
        .admin
        .batch_execute(&format!(
            "GRANT UPDATE (first_name) ON app.users TO {}; GRANT SELECT ON app.users TO {} WITH GRANT OPTION",
            target.rw, target.ro
        ))
        .await
        .unwrap();
    let before = acls(&target).await;
    let (old, roles) = (old(), vec![target.rw.clone(), target.ro.clone()]);
    let door = Door {
        schema: "app",
        table: "users",
        old: &old,
        roles: &roles,
    };
    let rw = target.db.connect_as(&target.rw).await;
    assert!(!refused(&rw, "SELECT name FROM app.users").await);

    let closed = attempt::close(&target.db.admin, "split", Some(&door), "ana", "r2")
        .await
        .unwrap();
    assert_eq!(closed.number, 1);
    assert!(refused(&rw, "SELECT name FROM app.users").await);
    assert!(refused(&rw, "SELECT * FROM app.users").await);
    assert!(refused(&rw, "UPDATE app.users SET name = 'x'").await);
    assert!(refused(&rw, "INSERT INTO app.users (id, name) VALUES (2, 'x')").await);
    assert!(!refused(&rw, "SELECT id, first_name FROM app.users").await);
    assert!(!refused(&rw, "UPDATE app.users SET first_name = 'Ada' WHERE id = 1").await);
    assert!(
        !refused(
            &rw,
            "INSERT INTO app.users (id, first_name) VALUES (2, 'Bo')"
        )
        .await
    );
    assert!(!refused(&rw, "DELETE FROM app.users WHERE id = 2").await);
    assert!(
        door::still_open(&target.db.admin, &door)
            .await
            .unwrap()
            .is_empty()
    );

    let again = attempt::close(&target.db.admin, "split", Some(&door), "bo", "r2")
        .await
        .unwrap_err();
    assert!(
        matches!(again, AttemptError::Closed { attempt: 1, .. }),
        "{again}"
    );
    attempt::reopen(&target.db.admin, "split", "ana", "release 1 came back")
        .await
        .unwrap();
    assert_eq!(acls(&target).await, before);
    assert!(!refused(&rw, "SELECT * FROM app.users").await);
    let gone = attempt::reopen(&target.db.admin, "split", "ana", "again")
        .await
        .unwrap_err();
    assert!(matches!(gone, AttemptError::NotClosed { .. }), "{gone}");

    let second = attempt::close(&target.db.admin, "split", Some(&door), "ana", "r2")
        .await
        .unwrap();
    assert_eq!(second.number, 2);
    let found = Attempt::under_way(&target.db.admin, "split").await.unwrap();
    assert_eq!(found.taken, second.taken);
    target.end().await;
}

#[tokio::test]
async fn a_path_through_public_is_named_and_nothing_is_shut() {
    let mut target = Target::new().await;
    target
        .db
        .admin
        .batch_execute("GRANT SELECT ON app.users TO PUBLIC")
        .await
        .unwrap();
    let before = acls(&target).await;
    let (old, roles) = (old(), vec![target.rw.clone()]);
    let door = Door {
        schema: "app",
        table: "users",
        old: &old,
        roles: &roles,
    };
    let transaction = target.db.admin.transaction().await.unwrap();
    let error = attempt::close(&transaction, "split", Some(&door), "ana", "r2")
        .await
        .unwrap_err()
        .to_string();
    transaction.rollback().await.unwrap();
    assert!(
        error.contains(&format!("{} may SELECT app.users.name", target.rw)),
        "{error}"
    );
    assert_eq!(acls(&target).await, before);
    assert!(
        Attempt::find(&target.db.admin, "split")
            .await
            .unwrap()
            .is_none()
    );
    target.end().await;
}

#[tokio::test]
async fn a_role_that_is_not_there_is_named() {
    let target = Target::new().await;
    let (old, roles) = (old(), vec![target.rw.clone(), "nobody_at_all".to_owned()]);
    let door = Door {
        schema: "app",
        table: "users",
        old: &old,
        roles: &roles,
    };
    let error = attempt::close(&target.db.admin, "split", Some(&door), "ana", "r2")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("nobody_at_all"), "{error}");
    target.end().await;
}

#[tokio::test]
async fn a_partition_and_hostile_names_are_doors_too() {
    let target = Target::new().await;
    let rw = &target.rw;
    target
        .db
        .admin
        .batch_execute(&format!(
            r#"CREATE SCHEMA "We""ird"; GRANT USAGE ON SCHEMA "We""ird" TO {rw};
               CREATE TABLE "We""ird"."T.a" (id int, "Na""me; --" text, keep text) PARTITION BY RANGE (id);
               CREATE TABLE "We""ird"."p 1" PARTITION OF "We""ird"."T.a" FOR VALUES FROM (0) TO (10);
               GRANT SELECT ON "We""ird"."T.a", "We""ird"."p 1" TO {rw}"#
        ))
        .await
        .unwrap();
    let (old, roles) = (vec!["Na\"me; --".to_owned()], vec![rw.clone()]);
    let door = Door {
        schema: "We\"ird",
        table: "T.a",
        old: &old,
        roles: &roles,
    };
    let closed = attempt::close(&target.db.admin, "split", Some(&door), "ana", "r2")
        .await
        .unwrap();
    assert_eq!(closed.taken.len(), 2, "{:?}", closed.taken);
    let client = target.db.connect_as(rw).await;
    assert!(refused(&client, r#"SELECT "Na""me; --" FROM "We""ird"."p 1""#).await);
    assert!(!refused(&client, r#"SELECT keep FROM "We""ird"."p 1""#).await);
    attempt::reopen(&target.db.admin, "split", "ana", "test")
        .await
        .unwrap();
    assert!(!refused(&client, r#"SELECT * FROM "We""ird"."p 1""#).await);
    drop(client);
    target.end().await;
}
