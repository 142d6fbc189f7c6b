//! Switch and contract against a real server: doors, attempts, looks.

mod closing;
mod dependents;
mod doors;
mod gates;
mod looks;
mod observing;
mod runs;
mod shop;
mod switches;

use aegis_testkit::TestDb;

/// A database with the tool's tables of switch and contract, and a table `app.users` with two runtime roles of this test's own.
struct Target {
    db: TestDb,
    rw: String,
    ro: String,
}

const TABLES: [&str; 4] = [
    include_str!("../../../schema/0001_ledger.sql"),
    include_str!("../../../schema/0003_switch.sql"),
    include_str!("../../../schema/0004_contract.sql"),
    aegis_backfill::SCHEMA,
];

impl Target {
    async fn new() -> Self {
        let db = TestDb::empty().await;
        // Roles belong to the whole server: a name of this database's own.
        let (rw, ro) = (format!("{}_rw", db.name()), format!("{}_ro", db.name()));
        db.admin
            .batch_execute("CREATE SCHEMA aegis_migrate")
            .await
            .unwrap();
        for sql in TABLES {
            db.admin.batch_execute(sql).await.unwrap();
        }
        db.admin
            .batch_execute(&format!(
                "CREATE SCHEMA app; CREATE ROLE {rw} LOGIN; CREATE ROLE {ro} LOGIN;
                 CREATE TABLE app.users (id bigint PRIMARY KEY, name text, first_name text, last_name text);
                 GRANT USAGE ON SCHEMA app TO {rw}, {ro};
                 GRANT SELECT, INSERT, UPDATE, DELETE ON app.users TO {rw};
                 GRANT SELECT ON app.users TO {ro};
                 INSERT INTO app.users VALUES (1, 'Ada Lovelace', 'Ada', 'Lovelace')"
            ))
            .await
            .unwrap();
        Self { db, rw, ro }
    }

    /// Roles outlive the database: they go with what they hold here.
    async fn end(self) {
        let (rw, ro) = (&self.rw, &self.ro);
        self.db
            .admin
            .batch_execute(&format!(
                "DROP OWNED BY {rw}, {ro}; DROP ROLE {rw}; DROP ROLE {ro}"
            ))
            .await
            .unwrap();
    }
}
