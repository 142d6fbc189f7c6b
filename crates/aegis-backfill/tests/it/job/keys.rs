//! Keys of several columns and of other types, partitions, roles.

use aegis_catalog::Name;

use super::{counting, database, not_moved, number, ran, sized, statement};

#[tokio::test]
async fn a_key_of_several_columns_is_walked_by_row() {
    let db = database(
        "CREATE TABLE app.t (tenant text NOT NULL, n int NOT NULL, at timestamptz NOT NULL, done int NOT NULL DEFAULT 0,
             PRIMARY KEY (tenant, n, at));
         INSERT INTO app.t SELECT 'a''' || g % 7 || '\"}, ', g % 11, '2026-01-01'::timestamptz + g * interval '1.000001 s'
         FROM generate_series(1, 1000) g",
    )
    .await;
    let mut spec = statement(
        "UPDATE t SET done = done + 1 WHERE (tenant, n, at) > :from AND (tenant, n, at) <= :to",
    );
    spec.key = vec!["tenant".to_owned(), "n".to_owned(), "at".to_owned()];
    spec.batch = sized(7, 7);
    assert_eq!(ran(&db, &spec).await.unwrap().rows_seen, 1000);
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn random_keys_and_other_collations_are_walked_by_their_index() {
    let db = database(
        "CREATE TABLE app.t (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), word text COLLATE \"C\" NOT NULL UNIQUE, done int NOT NULL DEFAULT 0);
         INSERT INTO app.t (word) SELECT chr(33 + g % 90) || md5(g::text) FROM generate_series(1, 500) g",
    )
    .await;
    ran(&db, &counting()).await.unwrap();
    assert_eq!(not_moved(&db, 1).await, 0);
    let mut spec = statement("UPDATE t SET done = done + 1 WHERE word > :from AND word <= :to");
    spec.change = "20261129T1031_word".to_owned();
    spec.key = vec!["word".to_owned()];
    ran(&db, &spec).await.unwrap();
    assert_eq!(not_moved(&db, 2).await, 0);
}

#[tokio::test]
async fn a_statement_over_partitions_meets_each_row_once() {
    let db = database(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, done int NOT NULL DEFAULT 0) PARTITION BY HASH (id);
         CREATE TABLE app.t_0 PARTITION OF app.t FOR VALUES WITH (MODULUS 3, REMAINDER 0);
         CREATE TABLE app.t_1 PARTITION OF app.t FOR VALUES WITH (MODULUS 3, REMAINDER 1);
         CREATE TABLE app.t_2 PARTITION OF app.t FOR VALUES WITH (MODULUS 3, REMAINDER 2);
         INSERT INTO app.t (id) SELECT g FROM generate_series(1, 500) g",
    )
    .await;
    // A range of one partition's keys would be the others' too.
    assert_eq!(ran(&db, &counting()).await.unwrap().rows_seen, 500);
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn what_is_written_is_written_by_the_role_of_the_change() {
    let db = database(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, done int NOT NULL DEFAULT 0, by_whom text);
         INSERT INTO app.t (id) SELECT g FROM generate_series(1, 30) g;
         DO $$ BEGIN CREATE ROLE backfill_owner; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
         GRANT ALL ON SCHEMA app TO backfill_owner; ALTER TABLE app.t OWNER TO backfill_owner",
    )
    .await;
    let mut spec = statement(
        "UPDATE t SET done = done + 1, by_whom = current_user || id WHERE id > :from AND id <= :to",
    );
    spec.run_as = Some("backfill_owner".to_owned());
    ran(&db, &spec).await.unwrap();
    let by = "SELECT count(*) FROM app.t WHERE by_whom LIKE 'backfill_owner%'";
    assert_eq!(number(&db, by).await, 30);
    // A policy that would hide rows from it is an error and not fewer rows.
    db.admin
        .batch_execute(
            "ALTER TABLE app.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON app.t USING (id > 10)",
        )
        .await
        .unwrap();
    spec.change = "20261129T1031_hidden".to_owned();
    let said = format!("{:?}", ran(&db, &spec).await.unwrap_err());
    assert!(said.contains("row-level security"), "{said}");
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn a_table_of_another_name_is_the_spec_s_own_and_a_changed_spec_has_no_cursor() {
    let db = database(
        "CREATE TABLE app.\"Odd \"\"t\" (\"I d\" int PRIMARY KEY, done int NOT NULL DEFAULT 0);
         INSERT INTO app.\"Odd \"\"t\" SELECT g FROM generate_series(1, 30) g",
    )
    .await;
    let sql = "UPDATE \"Odd \"\"t\" SET done = done + 1 WHERE \"I d\" > :from AND \"I d\" <= :to";
    let mut spec = statement(sql);
    spec.table = Name::new("app", "Odd \"t");
    spec.key = vec!["I d".to_owned()];
    ran(&db, &spec).await.unwrap();
    assert!(ran(&db, &spec).await.unwrap().was_done);
    let mut other = statement(&sql.replace("+ 1", "+ 2"));
    (other.table, other.key) = (spec.table.clone(), spec.key.clone());
    let said = ran(&db, &other).await.unwrap_err().to_string();
    assert!(said.contains("retry --restart"), "{said}");
}
