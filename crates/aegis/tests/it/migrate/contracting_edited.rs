//! No verb of a contract goes by a folder whose applied lines are others: in the file, or as they were sealed again.

use super::contracting::{ID, Shop};

/// Everything in the ledger but who has it, how often it was taken, and what was told of attempts that were refused.
const BOOKS: &str = "SELECT string_agg(c.relname || ' ' || md5(query_to_xml(format('SELECT * FROM aegis_migrate.%I AS t ORDER BY t::text', c.relname),
        false, false, '')::text), ', ' ORDER BY c.relname)
    FROM pg_class c WHERE c.relnamespace = 'aegis_migrate'::regnamespace AND c.relkind = 'r' AND c.relname NOT IN ('ledger', 'event')";

/// The contract is closed here, and could go on but for the edit.
pub(super) async fn nothing_goes_by_what_was_edited(shop: &Shop, until: &str) {
    let attest = [
        "contract",
        "attest",
        ID,
        "rollback_window",
        "--key",
        "bo.pem",
        "--reason",
        "x",
        "--until",
        until,
    ];
    let approve = [
        "contract",
        "approve",
        ID,
        "--file",
        "edited.json",
        "--author",
        "ana",
        "--not-after",
        until,
        "--key",
        "bo.pem",
    ];
    let verbs: [&[&str]; 5] = [
        &["contract", "observe", ID, "--once"],
        &["contract", "close", ID],
        &attest,
        &approve,
        &["contract", "run", ID],
    ];
    let books = async || -> String { shop.db.admin.query_one(BOOKS, &[]).await.unwrap().get(0) };
    let before = books().await;
    let file = shop.folder.dir().join(ID).join("expand.sql");
    let was = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{was}SELECT 1;\n")).unwrap();
    for verb in verbs {
        shop.refused(verb, 11, "expand").await;
    }
    std::fs::write(&file, was).unwrap();
    assert_eq!(books().await, before, "of an edited file");

    let phase = format!("WHERE change = '{ID}' AND phase = 'expand'");
    let hash: String = shop
        .db
        .admin
        .query_one(
            &format!("SELECT line_sha256 FROM aegis_migrate.phase {phase}"),
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let applied_with = async |hash: &str| {
        let sql = format!("UPDATE aegis_migrate.phase SET line_sha256 = '{hash}' {phase}");
        shop.sql(&sql).await;
    };
    applied_with(&"0".repeat(64)).await;
    let edited = books().await;
    for verb in verbs {
        shop.refused(verb, 11, "history was edited").await;
    }
    assert_eq!(books().await, edited, "of a line that was sealed again");
    applied_with(&hash).await;
    assert!(!shop.folder.path().join("edited.json").exists());
}
