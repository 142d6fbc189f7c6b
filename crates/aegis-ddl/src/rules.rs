//! The rules by name: what each is about and what to do instead. A closed list: an unknown name in an override is an error.

use serde::Serialize;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What happens on a live table.
    pub about: &'static str,
    /// What to write instead.
    pub safe: &'static str,
    /// Whether `[expand] compatible` may name it, with a reason: it is about what an older program meets, not about locks.
    pub compatibility: bool,
}

const fn rule(name: &'static str, about: &'static str, safe: &'static str) -> Rule {
    Rule {
        name,
        about,
        safe,
        compatibility: false,
    }
}

const fn meets(name: &'static str, about: &'static str, safe: &'static str) -> Rule {
    Rule {
        name,
        about,
        safe,
        compatibility: true,
    }
}

/// All of them, by name.
pub const RULES: &[Rule] = &[
    meets(
        "add-column",
        "programs with SELECT * or positional INSERT meet a column that they do not know; a prepared SELECT * fails once (0A000)",
        "nothing, when programs name their columns",
    ),
    rule(
        "add-column-constraint",
        "a CHECK, UNIQUE, PRIMARY KEY or, with a default, REFERENCES on a new column of a live table scans or builds under ACCESS EXCLUSIVE",
        "add the column alone, then the constraint NOT VALID and validate it later; a unique index concurrently",
    ),
    rule(
        "add-column-rewrite",
        "the table is rewritten under ACCESS EXCLUSIVE: a volatile default, serial, identity, a stored generated column or a domain with a constraint",
        "add the column without it, SET DEFAULT, then backfill",
    ),
    rule(
        "add-constraint-scan",
        "the constraint is checked against every row while writers wait",
        "add it NOT VALID, then VALIDATE CONSTRAINT in phase migrate",
    ),
    meets(
        "add-enum-value",
        "programs of the version before may read a value that they do not know",
        "ship programs that know it first, or declare it compatible",
    ),
    rule(
        "add-exclusion",
        "an exclusion constraint has no online form: it builds under ACCESS EXCLUSIVE",
        "a new table, or a window",
    ),
    rule(
        "add-primary-key",
        "a primary key builds its index under ACCESS EXCLUSIVE",
        "a unique index concurrently, then ADD PRIMARY KEY USING INDEX",
    ),
    rule(
        "add-required-column",
        "NOT NULL without a default fails when the table has rows, and breaks INSERTs of the version before",
        "add it nullable, write it from both versions, backfill, then NOT NULL",
    ),
    rule(
        "add-unique",
        "a unique constraint builds its index under ACCESS EXCLUSIVE",
        "a unique index concurrently, then ADD CONSTRAINT … UNIQUE USING INDEX",
    ),
    rule(
        "already-there",
        "the set made something of this name before, and the server refuses a second one",
        "another name; or drop the first one, or leave this one out",
    ),
    meets(
        "alter-policy",
        "the version before sees or writes other rows than before",
        "declare it compatible, or contract",
    ),
    meets(
        "alter-type",
        "programs that read the composite type meet another shape",
        "a new type",
    ),
    rule(
        "attach-partition-scan",
        "the partition (and a default partition) is scanned under a strong lock unless a valid CHECK proves its bound",
        "add the CHECK NOT VALID, validate it in phase migrate, attach, drop the CHECK",
    ),
    rule(
        "backfill-key",
        "the key of a backfill may be NULL or is not unique on the live table, so rows are left out",
        "name columns with NOT NULL and a unique index over exactly them; the primary key is one",
    ),
    rule(
        "backfill-range",
        "the statement of a backfill does not name both ends of its range, or names one where it bounds nothing, so each batch would do more than it",
        "write WHERE … id > :from AND id <= :to",
    ),
    rule(
        "change-type-index",
        "the table stays, but its indexes are rebuilt under ACCESS EXCLUSIVE",
        "a new column with dual writes",
    ),
    rule(
        "change-type-rewrite",
        "the table is rewritten under ACCESS EXCLUSIVE",
        "a new column with dual writes, a backfill, a switch",
    ),
    meets(
        "change-type-narrower",
        "programs of the version before may write what no longer fits",
        "a new column with dual writes",
    ),
    rule(
        "cluster",
        "the table is rewritten under ACCESS EXCLUSIVE",
        "pg_repack, or REPACK CONCURRENTLY (19)",
    ),
    rule(
        "cluster-wide",
        "it acts on the whole server, not on this database",
        "the operators of the server do it",
    ),
    rule(
        "concurrently-if-not-exists",
        "IF NOT EXISTS takes an invalid leftover of the same name for done",
        "leave IF NOT EXISTS out; the runner cures leftovers that it made",
    ),
    rule(
        "concurrently-in-transaction",
        "CONCURRENTLY cannot run inside a transaction",
        "a step of its own",
    ),
    rule(
        "contract-own-commit",
        "a contract was sealed together with what it ends, so no release can have run between them",
        "seal it in a commit of its own, after the release that needs it no more",
    ),
    rule(
        "create-index-not-concurrent",
        "writers wait while the index is built",
        "CREATE INDEX CONCURRENTLY in phase migrate",
    ),
    rule(
        "create-table-as",
        "it copies a query's rows in one statement",
        "CREATE TABLE, then a backfill",
    ),
    rule(
        "create-table-if-not-exists",
        "a table of the same name and another shape is taken for done",
        "leave IF NOT EXISTS out",
    ),
    meets(
        "create-trigger",
        "writes of the version before run it too",
        "declare it compatible when it only adds",
    ),
    rule(
        "dependent-in-the-way",
        "the server refuses to change the type of a column that a view, rule, policy or trigger names",
        "a new column with dual writes; or drop what names it, and make it again, in contract",
    ),
    rule(
        "detach-not-concurrent",
        "DETACH takes ACCESS EXCLUSIVE on the parent",
        "DETACH PARTITION … CONCURRENTLY, in a step of its own",
    ),
    meets(
        "detach-partition",
        "queries on the parent lose its rows",
        "contract",
    ),
    meets(
        "disable-trigger",
        "what the trigger kept up is no longer kept up",
        "contract",
    ),
    rule(
        "dml-bulk",
        "many rows in one transaction: locks, WAL, bloat, and no way to pause",
        "a backfill",
    ),
    meets("drop-column", "the version before names it", "contract"),
    meets(
        "drop-constraint",
        "what the version before relied on no longer holds; a foreign key's drop takes ACCESS EXCLUSIVE on both tables",
        "contract",
    ),
    meets(
        "drop-default",
        "INSERTs of the version before that leave it out fail or write NULL",
        "contract",
    ),
    rule(
        "drop-index-not-concurrent",
        "DROP INDEX takes ACCESS EXCLUSIVE on the table and waits for its readers",
        "DROP INDEX CONCURRENTLY in phase migrate",
    ),
    meets("drop-object", "the version before may name it", "contract"),
    meets("drop-table", "the version before names it", "contract"),
    rule(
        "edited-history",
        "a migration that databases have run was edited or taken away",
        "put it back as it was and write a new one",
    ),
    rule(
        "empty-file",
        "a phase that would be sealed has no statement, and a sealed phase is never edited",
        "write it first, or take its key out of change.toml",
    ),
    rule(
        "foreign-key-target",
        "a foreign key points at columns that have no unique index over exactly them, and the server refuses it",
        "a unique index concurrently over them first, or the primary key",
    ),
    meets(
        "identity-change",
        "INSERTs of the version before that give, or leave out, the value may fail",
        "contract",
    ),
    rule(
        "lock-table",
        "it holds a lock for the rest of the transaction",
        "the runner locks what a statement needs, in its mode",
    ),
    meets(
        "new-write-restriction",
        "writes of the version before that break it are refused, even while it is NOT VALID (an UPDATE of an old row too)",
        "dual writes and a backfill first, or declare it compatible",
    ),
    rule(
        "one-query",
        "a tool that begins no transaction sends the whole file as one query, which the server makes one transaction when it has several statements",
        "a file of its own for each statement that cannot be in a transaction",
    ),
    rule(
        "opaque-sql",
        "a part could not be read, so nobody knows what it does",
        "static statements; or in a change `opaque`, with verify.sql and a reason",
    ),
    rule(
        "outside-transaction",
        "it cannot run in a transaction, and a plain file does not say how it is run",
        "run it by itself: psql -f without -1, or the switch of the tool that runs the file",
    ),
    rule(
        "placeholder",
        "something is filled in when the tool runs, and is not known here",
        "name its value in the configuration of the tool beside the folder",
    ),
    rule(
        "refresh-not-concurrent",
        "readers of the materialized view wait",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY (it needs a unique index), in phase migrate",
    ),
    rule(
        "reindex-not-concurrent",
        "writers wait, and readers that use the index",
        "REINDEX … CONCURRENTLY in phase migrate",
    ),
    meets(
        "rename",
        "the version before uses the old name",
        "a second column with dual writes, or a view of the old name; the old one goes in contract",
    ),
    meets(
        "replace-function",
        "the version before calls it too",
        "a function of another name, or declare it compatible",
    ),
    meets(
        "replace-view",
        "readers of the version before meet other columns",
        "a view of another name, or declare it compatible",
    ),
    meets(
        "replica-identity",
        "without an identity UPDATE and DELETE of a published table fail",
        "DEFAULT, FULL, or USING INDEX",
    ),
    rule(
        "replace-view-columns",
        "the server refuses a replacement that loses, renames or moves a column (42P16)",
        "new columns at the end; or a view of another name, and the old one goes in contract",
    ),
    meets("revoke", "the version before loses a right", "contract"),
    meets(
        "row-security",
        "the version before sees or writes other rows than before",
        "contract",
    ),
    meets(
        "set-default",
        "INSERTs of the version before that leave it out write another value",
        "declare it compatible",
    ),
    rule(
        "set-logged",
        "the table is rewritten under ACCESS EXCLUSIVE",
        "a new table",
    ),
    meets(
        "set-not-null",
        "INSERTs of the version before may leave it NULL",
        "contract, when every version writes it",
    ),
    rule(
        "set-not-null-scan",
        "every row is checked under ACCESS EXCLUSIVE",
        "CHECK (column IS NOT NULL) NOT VALID, VALIDATE in phase migrate, then SET NOT NULL, then drop the CHECK",
    ),
    rule(
        "set-schema",
        "the version before uses the old name",
        "a view in the old schema, or search_path of the programs",
    ),
    rule(
        "set-storage-place",
        "the table is copied under ACCESS EXCLUSIVE",
        "a new table, or a window",
    ),
    rule(
        "statement-after-strong-lock",
        "the table stays locked while later statements of the transaction run",
        "one statement, one transaction",
    ),
    rule(
        "sync-volatile",
        "an expression of a dual write has another value each time, so the two sides never agree and no row is ever done",
        "an expression over the columns of the row alone; DEFAULT or the program gives what is of the moment",
    ),
    rule(
        "transaction-in-file",
        "the runner makes the transactions; BEGIN and COMMIT in a file take that from it",
        "take them out; `atomic = true` for what must be one",
    ),
    rule(
        "truncate",
        "every row goes, under ACCESS EXCLUSIVE",
        "contract, or a backfill that deletes",
    ),
    rule(
        "unknown-statement",
        "this release does not know what it does",
        "a newer release, or another form",
    ),
    rule(
        "unreadable",
        "the file is no SQL from there on, or nested too deep to be read, so nothing is known of what it does",
        "mend the statement; what is no SQL belongs in another file",
    ),
    rule(
        "unused-override",
        "a reason is given for a rule that does not speak here",
        "take it out; name only rules that speak, with a reason",
    ),
    rule(
        "use-of-new-enum-value",
        "a value that the same transaction added cannot be used before it commits (before 18)",
        "two transactions",
    ),
    rule(
        "vacuum-full",
        "the table is rewritten under ACCESS EXCLUSIVE",
        "pg_repack, or REPACK CONCURRENTLY (19)",
    ),
    rule(
        "validate-in-same-transaction",
        "a strong lock, that of NOT VALID or of another action, is kept while VALIDATE scans",
        "VALIDATE in a transaction of its own, in phase migrate",
    ),
    rule(
        "write-to-generated",
        "a generated column, or an identity ALWAYS, is given a value, and the server refuses it",
        "leave the column out, or write DEFAULT",
    ),
];

/// The rule of this name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
