//! Plain folders: each file is deployed by itself, and what earlier files said is known. Locks and objects of single statements.

use aegis_ddl::{Class, Context, LockMode, SourceFile, judge, read};

/// The class of the worst statement of the last file.
fn last(files: &[&str]) -> (Class, String) {
    let files: Vec<_> = files
        .iter()
        .enumerate()
        .map(|(number, sql)| SourceFile {
            path: format!("{number}.sql"),
            script: read(sql).unwrap(),
            phase: None,
            atomic: None,
            proven: false,
        })
        .collect();
    let context = Context {
        server: 18,
        catalog: None,
        schema: "public",
        fresh: false,
        compatible: &[],
    };
    let report = judge(&files, &context);
    let verdict = report.verdicts.last().unwrap();
    let rules: Vec<_> = verdict.findings.iter().map(|one| one.rule).collect();
    (verdict.class, rules.join(" "))
}

#[test]
fn a_table_of_an_earlier_file_is_live() {
    let (class, rules) = last(&["create table t (a int)", "create index i on t (a)"]);
    assert_eq!(class, Class::B, "{rules}");
    assert_eq!(
        last(&["create table t (a int); create index i on t (a)"]).0,
        Class::A
    );
}

#[test]
fn a_type_of_an_earlier_file_tells_a_widening_from_a_rewrite() {
    let table = "create table t (id int primary key, a varchar(10), n int)";
    for free in [
        "alter table t alter a type varchar(20)",
        "alter table t alter a type text",
        "alter table t alter a type text using a::text",
    ] {
        let (class, rules) = last(&[table, free]);
        assert_eq!(class, Class::A, "{free}: {rules}");
    }
    for rewrite in [
        "alter table t alter n type bigint",
        "alter table t alter a type varchar(5)",
        "alter table t alter a type text using lower(a)",
    ] {
        let (class, rules) = last(&[table, rewrite]);
        assert_eq!(class, Class::B, "{rewrite}: {rules}");
    }
}

#[test]
fn a_serial_column_is_of_the_integer_type_that_the_server_makes_of_it() {
    let made = "create table t (a serial, b bigserial, c smallserial)";
    let (class, rules) = last(&[made, "alter table t alter a type int"]);
    assert_eq!((class, rules.as_str()), (Class::A, ""));
    let (class, rules) = last(&[made, "alter table t alter a type bigint"]);
    assert_eq!((class, rules.as_str()), (Class::B, "change-type-rewrite"));
    let (_, rules) = last(&[made, "alter table t alter b type integer"]);
    assert_eq!(rules, "change-type-rewrite change-type-narrower");
    let (class, _) = last(&[made, "alter table t alter c type smallint"]);
    assert_eq!(class, Class::A);
}

#[test]
fn thousands_of_conditions_and_statements_are_read_to_their_end() {
    const MANY: usize = 20_000;
    let chain: Vec<String> = (0..MANY / 4).map(|id| format!("id = {id}")).collect();
    let (class, rules) = last(&[&format!("update t set a = 1 where {}", chain.join(" or "))]);
    assert_eq!((class, rules.as_str()), (Class::B, "dml-bulk"));
    let (class, rules) = last(&[&format!(
        "update t set a = 1 where {}",
        chain[..900].join(" or ")
    )]);
    assert_eq!((class, rules.as_str()), (Class::A, ""));
    let file = "alter table t\n  add column a int;\n".repeat(MANY);
    let script = read(&file).unwrap();
    assert_eq!(script.statements.len(), MANY);
    assert_eq!(script.statements.last().unwrap().line, 2 * MANY - 1);
}

#[test]
fn a_key_by_an_index_scans_when_a_column_of_an_earlier_file_may_be_null() {
    let table = "create table t (id bigint, code text not null)";
    let index = "create unique index concurrently i on t (id)";
    let key = "alter table t add constraint k primary key using index i";
    let (class, rules) = last(&[table, index, key]);
    assert_eq!((class, rules.as_str()), (Class::B, "set-not-null-scan"));
    let index = "create unique index concurrently i on t (code)";
    let (class, rules) = last(&[table, index, key]);
    assert_eq!((class, rules.as_str()), (Class::A, ""));
}

#[test]
fn a_view_of_an_earlier_file_keeps_its_columns() {
    let view = "create view v as select a, t.b, lower(c) as c from t";
    let worst = |sql: &str| last(&[view, sql]);
    let (class, rules) = worst("create or replace view v as select a, t.b from t");
    assert_eq!(class, Class::E, "{rules}");
    assert!(rules.contains("replace-view-columns"), "{rules}");
    assert_eq!(
        worst("create or replace view v as select a, b, c, d from t").0,
        Class::A
    );
    // Nobody knows the columns of a star.
    assert_eq!(
        worst("create or replace view v as select * from t").0,
        Class::A
    );
    let report = last(&[view, "drop view v", "create view v as select a from t"]);
    assert_eq!(report.0, Class::A);
}

#[test]
fn a_table_that_may_be_there_is_new_for_what_belongs_to_it() {
    let table = "create table if not exists t (id bigint, code text)";
    let with = |sql: &str| last(&[&format!("{table}; {sql}")]);
    for passes in [
        "create index if not exists i on t (code)",
        "alter table t enable row level security",
        "alter table t add constraint c check (code <> '')",
        "alter table t add constraint u unique (code)",
    ] {
        let (class, rules) = with(passes);
        assert_eq!(class, Class::A, "{passes}: {rules}");
    }
    for long in [
        "create index i on t (other)",
        "alter table t alter code set not null",
        "update t set code = 'x'",
    ] {
        let (class, rules) = with(long);
        assert_eq!(class, Class::B, "{long}: {rules}");
    }
    // An earlier file made it: it is there.
    let (class, rules) = last(&[
        "create table t (id bigint, code text)",
        &format!("{table}; create index i on t (code)"),
    ]);
    assert_eq!(class, Class::B, "{rules}");
}

#[test]
fn a_domain_of_an_earlier_file_rewrites_when_it_has_a_check() {
    let add = "alter table t add column a d";
    let (class, rules) = last(&["create domain d as text check (value <> '')", add]);
    assert_eq!(class, Class::B, "{rules}");
    let (class, rules) = last(&["create domain d as text", add]);
    assert_eq!(class, Class::A, "{rules}");
}

#[test]
fn a_check_validated_by_an_earlier_file_proves_not_null_and_may_go_after() {
    let before = [
        "create table t (a int)",
        "alter table t add constraint c check (a is not null) not valid",
        "alter table t validate constraint c",
    ];
    let tighten = "alter table t alter a set not null";
    let (class, rules) = last(&[before[0], before[1], before[2], tighten]);
    assert_eq!(class, Class::A, "{rules}");
    let (class, _) = last(&[before[0], before[1], tighten]);
    assert_eq!(class, Class::B);
    let drop = "alter table t drop constraint c";
    let (class, rules) = last(&[before[0], before[1], before[2], tighten, drop]);
    assert_eq!(class, Class::A, "{rules}");
}

#[test]
fn locks_are_those_of_the_text_in_name_order_and_the_strongest_of_each() {
    let of = |sql: &str| -> Vec<(String, LockMode)> {
        read(sql).unwrap().statements[0]
            .locks()
            .into_iter()
            .map(|lock| (lock.relation.to_string(), lock.mode))
            .collect()
    };
    let both = LockMode::ShareRowExclusive;
    assert_eq!(
        of("alter table z add constraint f foreign key (a) references b (id) not valid"),
        [("b".to_owned(), both), ("z".to_owned(), both)]
    );
    assert_eq!(
        of("alter table t validate constraint c, add column a int"),
        [("t".to_owned(), LockMode::AccessExclusive)]
    );
    assert_eq!(of("create table t (a int)"), []);
}

#[test]
fn objects_are_named_with_their_table_also_inside_a_block() {
    let script = read("do $$ begin alter table s.t add column \"A\" int; end $$").unwrap();
    let seen: Vec<String> = script.statements[0]
        .touches()
        .iter()
        .map(|one| {
            let on = one
                .on
                .as_ref()
                .map_or_else(String::new, |on| format!(" on {on}"));
            format!("{} {}{on}", one.kind.word(), one.name.name)
        })
        .collect();
    assert_eq!(seen, ["table t", "column A on s.t"]);
}

#[test]
fn no_text_makes_the_reader_panic_and_statements_stand_where_they_say() {
    // Every prefix of hostile text, cut at every character.
    let hostile = "\u{feff}CREATE FUNCTION f() RETURNS int AS $a$ SELECT ';' $a$ LANGUAGE sql;\r\n/* /* ; */ */ SELECT \"a;\"\"b\", U&'\\0041', E'\\';', $1; \\x ü; CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2); COPY t FROM stdin;\n";
    for (end, _) in hostile.char_indices() {
        if let Ok(script) = read(&hostile[..end]) {
            for statement in &script.statements {
                assert_eq!(&hostile[statement.span.clone()], statement.text);
                let again = read(&statement.text).unwrap();
                assert_eq!(again.statements.len(), 1, "{}", statement.text);
                assert_eq!(again.statements[0].normalised(), statement.normalised());
            }
        }
    }
}
