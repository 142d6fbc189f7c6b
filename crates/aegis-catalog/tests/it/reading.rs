//! What is read of a database that has one of everything.

use aegis_catalog::{
    Catalog, ConstraintKind, DependentKind, Enabled, Generated, Identity, Name, RelationKind,
    Scope, TypeKind, read, read_within,
};
use aegis_testkit::TestDb;

use crate::zoo::{all, fill, major, run, suffix, zoo};

fn app(name: &str) -> Name {
    Name::new("app", name)
}

#[tokio::test]
async fn a_table_is_read_with_its_columns() {
    let db = zoo().await;
    let catalog = all(&db.admin).await;
    let users = catalog.relation(&app("users")).unwrap();
    assert_eq!(users.kind, RelationKind::Table);
    assert_eq!(
        users.options,
        [
            "autovacuum_enabled=false",
            "fillfactor=80",
            "toast.autovacuum_enabled=false"
        ]
    );
    // The dropped column leaves no gap.
    let last = users.columns.last().unwrap();
    assert_eq!((last.name.as_str(), last.position), ("place", 12));
    let column = |name: &str| users.column(name).unwrap();
    assert_eq!(column("id").identity, Identity::Always);
    assert!(column("id").not_null && column("id").not_null_valid);
    assert_eq!(column("name").data_type, "character varying(40)");
    assert_eq!(
        column("email").collation,
        Some(Name::new("pg_catalog", "C"))
    );
    assert_eq!(column("email").storage.as_deref(), Some("external"));
    assert_eq!(column("name").compression.as_deref(), Some("pglz"));
    assert_eq!(column("slugged").generated, Generated::Stored);
    assert_eq!(column("score").type_name, app("percent"));
    assert_eq!(
        column("tags").element,
        Some(Name::new("pg_catalog", "text"))
    );
    assert_eq!(column("feeling").default.as_deref(), Some("'ok'::app.mood"));
    let scratch = catalog.relation(&app("scratch")).unwrap();
    assert_eq!(scratch.replica_identity, "full");
    assert_eq!(scratch.owner, format!("Zoo Owner {}", suffix(&db)));
    let rest = catalog.relation(&app("events_rest")).unwrap();
    assert_eq!(rest.partition_of.as_ref().unwrap().bound, "DEFAULT");
    assert_eq!(
        catalog.relation(&app("events")).unwrap().default_partition,
        Some(app("events_rest"))
    );
    assert_eq!(
        catalog.relation(&app("child")).unwrap().inherits,
        [app("parent")]
    );
}

#[tokio::test]
async fn what_hangs_on_tables_is_read() {
    let db = zoo().await;
    let catalog = all(&db.admin).await;
    let open = catalog.index(&app("orders_open")).unwrap();
    assert!(open.unique && open.valid && open.ready && open.live);
    assert_eq!(open.keys[0].column.as_deref(), Some("user_id"));
    assert_eq!(open.keys[1].column, None);
    assert_eq!(
        open.keys[1].opclass,
        Name::new("pg_catalog", "text_pattern_ops")
    );
    assert!(open.keys[1].descending && !open.keys[1].nulls_first);
    assert!(
        open.predicate
            .as_ref()
            .unwrap()
            .contains("status = 'new'::text")
    );
    assert_eq!(
        catalog.index(&app("orders_user")).unwrap().include,
        ["status"]
    );
    let constraint = |table: &str, name: &str| {
        let table = app(table);
        catalog
            .constraints_of(&table)
            .find(|c| c.name == name)
            .unwrap()
            .clone()
    };
    let unique = constraint("users", "name_or_email");
    assert!(unique.deferrable && unique.deferred);
    assert_eq!(unique.kind, ConstraintKind::Unique);
    assert_eq!(unique.definition, "UNIQUE (name, email)");
    let small = constraint("users", "score_small");
    assert!(!small.validated);
    assert!(
        !small.definition.contains("NOT VALID"),
        "{}",
        small.definition
    );
    let foreign = constraint("orders", "orders_user_id_fkey");
    assert_eq!(foreign.references, Some(app("users")));
    assert_eq!(foreign.referenced_columns, ["id"]);
    // One row for the key to a partitioned table, not one a partition.
    let notes = app("notes");
    let keys = catalog
        .constraints_of(&notes)
        .filter(|c| c.kind == ConstraintKind::Foreign);
    assert_eq!(keys.count(), 1);
    let disabled = catalog
        .triggers
        .iter()
        .find(|t| t.name == "users_later")
        .unwrap();
    assert_eq!(disabled.enabled, Enabled::Disabled);
    assert!(
        catalog
            .triggers
            .iter()
            .any(|t| t.name == "events_touch" && t.table == app("events_2026") && t.inherited)
    );
    assert!(!catalog.triggers.iter().any(|t| t.name.starts_with("RI_")));
    let policy = &catalog.policies[0];
    assert_eq!(
        (policy.permissive, policy.command.as_str()),
        (false, "update")
    );
    let mood = catalog.type_named(&app("mood")).unwrap();
    assert_eq!(
        (mood.kind, mood.labels.join(",")),
        (TypeKind::Enum, "sad,ok,happy".to_owned())
    );
    assert_eq!(
        catalog
            .type_named(&app("strict_percent"))
            .unwrap()
            .base_name,
        Some(app("percent"))
    );
    // Neither arrays, nor row types, nor what a range brings.
    let types: Vec<&str> = catalog.types.iter().map(|t| t.name.name.as_str()).collect();
    assert_eq!(
        types,
        ["mood", "percent", "point3", "span", "strict_percent"]
    );
    assert_eq!(catalog.functions_named(&app("span")).count(), 0);
    let legacy = catalog.sequence(&app("users_legacy_seq")).unwrap();
    assert_eq!(legacy.owned_by, Some((app("users"), "legacy".to_owned())));
    assert!(!legacy.identity && catalog.sequence(&app("users_id_seq")).unwrap().identity);
    let touch = catalog.functions_named(&app("touch")).next().unwrap();
    assert!(touch.security_definer);
    assert!(touch.mentions.contains(&"email".to_owned()));
    let kinds: Vec<&str> = catalog.others.iter().map(|o| o.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "cast",
            "collation",
            "foreign-data wrapper",
            "operator",
            "server"
        ]
    );
}

#[tokio::test]
async fn grants_are_what_differs_from_the_owners_own() {
    let db = zoo().await;
    let catalog = all(&db.admin).await;
    let reader = format!("zoo_reader_{}", suffix(&db));
    let of = |kind: &str, name: &str, grantee: &str| {
        let found = catalog
            .grants
            .iter()
            .find(|g| g.kind == kind && g.object.name == name && g.grantee == grantee);
        found.map(|g| g.privileges.join(", "))
    };
    assert_eq!(
        of("table", "orders", &reader).unwrap(),
        "INSERT WITH GRANT OPTION, SELECT WITH GRANT OPTION"
    );
    let column = catalog
        .grants
        .iter()
        .find(|g| g.column.as_deref() == Some("email"))
        .unwrap();
    assert_eq!(column.privileges, ["SELECT"]);
    assert_eq!(of("function", "slug(t text)", "PUBLIC"), None);
    assert_eq!(
        of("function", "tidy(INOUT n integer)", "PUBLIC").unwrap(),
        "EXECUTE"
    );
    assert_eq!(of("type", "mood", "PUBLIC"), None);
    let owner = format!("Zoo Owner {}", suffix(&db));
    assert!(!of("table", "scratch", &owner).unwrap().contains("TRUNCATE"));
    assert!(
        catalog
            .grants
            .iter()
            .any(|g| g.kind == "default" && g.column.as_deref() == Some("tables"))
    );
}

#[tokio::test]
async fn dependents_of_a_column_are_named() {
    let db = zoo().await;
    let catalog = all(&db.admin).await;
    let kinds = |table: &str, column: &str| {
        let mut kinds: Vec<DependentKind> = catalog
            .dependents(&app(table), Some(column))
            .iter()
            .map(|d| d.kind)
            .collect();
        kinds.dedup();
        kinds
    };
    let email = kinds("users", "email");
    for kind in [
        DependentKind::Index,
        DependentKind::Constraint,
        DependentKind::Expression,
        DependentKind::View,
        DependentKind::Trigger,
        DependentKind::FunctionText,
    ] {
        assert!(email.contains(&kind), "{kind:?} is not in {email:?}");
    }
    assert!(kinds("users", "id").contains(&DependentKind::ForeignKey));
    assert!(kinds("users", "legacy").contains(&DependentKind::Sequence));
    assert!(kinds("orders", "total").contains(&DependentKind::Policy));
    assert!(kinds("orders", "status").contains(&DependentKind::Statistics));
    let whole: Vec<DependentKind> = catalog
        .dependents(&app("orders"), None)
        .iter()
        .map(|d| d.kind)
        .collect();
    assert!(whole.contains(&DependentKind::Publication), "{whole:?}");
    let loud = catalog.dependents(&app("loud"), Some("email"));
    assert!(loud.iter().any(|d| d.dependent == app("louder")));
}

#[tokio::test]
async fn newer_servers_tell_what_only_they_have() {
    let db = zoo().await;
    let catalog = all(&db.admin).await;
    let major = major(&db.admin).await;
    if major >= 15 {
        assert!(
            catalog
                .index(&app("orders_nulls"))
                .unwrap()
                .nulls_not_distinct
        );
        let filtered = catalog
            .publications
            .iter()
            .find(|p| p.name == "zoo_filtered")
            .unwrap();
        let whole = catalog
            .publications
            .iter()
            .find(|p| p.name == "zoo_schema")
            .unwrap();
        assert_eq!(whole.schemas, ["We\"ird.Schema"]);
        assert_eq!(
            filtered.tables[0].columns.as_ref().unwrap(),
            &["id", "email"]
        );
        assert_eq!(
            filtered.tables[0].filter.as_deref(),
            Some("(email <> ''::text)")
        );
    }
    if major >= 18 {
        let orders = catalog.relation(&app("orders")).unwrap();
        assert_eq!(
            orders.column("twice").unwrap().generated,
            Generated::Virtual
        );
        // attnotnull is true, and old rows may still hold NULL.
        let total = orders.column("total").unwrap();
        assert_eq!((total.not_null, total.not_null_valid), (true, false));
        assert_eq!(total.not_null_constraint.as_deref(), Some("status_set"));
        let orders = app("orders");
        let any = catalog
            .constraints_of(&orders)
            .find(|c| c.name == "total_any")
            .unwrap();
        assert!(!any.enforced);
    }
}

#[tokio::test]
async fn what_a_session_sets_changes_nothing() {
    let db = zoo().await;
    let calm = all(&db.admin).await.structure();
    run(
        &db.admin,
        "SET search_path = app; SET quote_all_identifiers = on; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'; \
         SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape'; SET extra_float_digits = -3; \
         SET standard_conforming_strings = off",
    )
    .await;
    let other = all(&db.admin).await.structure();
    assert_eq!(calm, other);
    // And they are as they were.
    let row = db.admin.query_one("SHOW TimeZone", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "Asia/Tokyo");
}

#[tokio::test]
async fn a_transaction_reads_what_it_did_and_keeps_its_settings() {
    let db = zoo().await;
    let mut client = db.connect().await;
    let transaction = client.transaction().await.unwrap();
    transaction
        .batch_execute("SET LOCAL search_path = app; ALTER TABLE users ADD COLUMN extra int")
        .await
        .unwrap();
    let scope = Scope::objects([app("users")]).structure_only();
    let catalog = read_within(&transaction, &scope).await.unwrap();
    assert!(
        catalog
            .relation(&app("users"))
            .unwrap()
            .column("extra")
            .is_some()
    );
    let row = transaction
        .query_one("SHOW search_path", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, &str>(0), "app");
}

#[tokio::test]
async fn named_objects_come_with_what_belongs_to_them() {
    let db = zoo().await;
    let of = async |name: &str| {
        let scope = Scope::objects([app(name)]).structure_only();
        let catalog = read(&db.admin, &scope).await.unwrap();
        catalog
            .relations
            .iter()
            .map(|r| r.name.name.clone())
            .collect::<Vec<String>>()
    };
    // A partition brings its tree, and tables with keys to it; an index its table.
    let tree = [
        "events",
        "events_2026",
        "events_rest",
        "events_rest_a",
        "notes",
    ];
    assert_eq!(of("events_rest_a").await, tree);
    assert!(of("orders_total").await.contains(&"orders".to_owned()));
    // A view hangs on its table, and a view on that.
    let users = of("users").await;
    assert!(
        ["loud", "louder", "orders"]
            .iter()
            .all(|n| users.contains(&(*n).to_owned())),
        "{users:?}"
    );
    // A domain brings the tables that have it.
    assert!(of("percent").await.contains(&"users".to_owned()));
    assert_eq!(of("scratch").await, ["scratch"]);
}

#[tokio::test]
async fn sizes_and_rates_are_known_or_unknown_never_zero_by_default() {
    let db = TestDb::empty().await;
    run(
        &db.admin,
        "CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)",
    )
    .await;
    let catalog = all(&db.admin).await;
    let t = Name::new("public", "t");
    let size = catalog.relation(&t).unwrap().size.unwrap();
    assert!(size.table_bytes >= 8192);
    assert_eq!(size.rows, None, "never analysed");
    assert_eq!(
        catalog.rates_of(&t).unwrap().calls,
        None,
        "pg_stat_statements is not there"
    );
    assert_eq!(catalog.calls_window, None);
    // Nobody has reset it, so it has counted since the server's statistics began; then since its own reset.
    let began = catalog.rates_window.unwrap();
    assert!(began.seconds > 0.0);
    run(&db.admin, "SELECT pg_stat_reset()").await;
    let reset = all(&db.admin).await.rates_window.unwrap();
    assert!(reset.since > began.since, "{reset:?} {began:?}");
    run(&db.admin, "ANALYZE t").await;
    let catalog = all(&db.admin).await;
    assert_eq!(
        catalog.relation(&t).unwrap().size.unwrap().rows,
        Some(1000.0)
    );
    let plain = read(&db.admin, &Scope::everything().structure_only())
        .await
        .unwrap();
    assert_eq!(plain.relation(&t).unwrap().size, None);
}

#[tokio::test]
async fn a_snapshot_file_is_the_same_catalog() {
    let db = TestDb::empty().await;
    fill(&db).await;
    let catalog = all(&db.admin).await;
    let text = catalog.to_json().unwrap();
    let again = Catalog::from_json(&text).unwrap();
    assert_eq!(again, catalog);
    assert_eq!(
        again.structure().fingerprint(),
        catalog.structure().fingerprint()
    );
    // No body of a function leaves the database.
    assert!(!text.contains("reads users.email as text"));
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    let refused = Catalog::from_json(&newer).unwrap_err().to_string();
    assert!(refused.contains("has format 2"), "{refused}");
    let refused = Catalog::from_json("[]").unwrap_err().to_string();
    assert!(
        refused.contains("aegis migrate snapshot --out FILE"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_table_that_somebody_holds_is_waited_for_with_a_bound() {
    let db = TestDb::empty().await;
    run(&db.admin, "CREATE TABLE t (a int)").await;
    run(&db.admin, "BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").await;
    let client = db.connect().await;
    let error = read(&client, &Scope::everything())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("ACCESS EXCLUSIVE"), "{error}");
    // The connection is free again, and the structure alone needs no lock on a plain table.
    run(&db.admin, "ROLLBACK").await;
    all(&client).await;
}
