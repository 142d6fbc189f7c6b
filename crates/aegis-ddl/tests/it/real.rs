//! Migrations of the kinds that stand in public repositories, good and bad, without a catalog: what must be caught, what must pass.
//! An entry of a list is one file and begins with `-- >>> CLASS[:rule] [@server] title`.

use crate::classes::class_of;

/// By the tools that wrote them, and by kinds.
pub(super) const LISTS: &[(&str, &str)] = &[
    ("frameworks.sql", include_str!("real/frameworks.sql")),
    ("plain_sql.sql", include_str!("real/plain_sql.sql")),
    ("shapes.sql", include_str!("real/shapes.sql")),
    ("rest.sql", include_str!("real/rest.sql")),
];

#[test]
fn every_migration_of_the_lists_has_its_class() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (list, text) in LISTS {
        for entry in text.split("-- >>> ").skip(1) {
            let (head, sql) = entry.split_once('\n').unwrap();
            let (expected, title) = head.split_once(' ').unwrap();
            let (server, title) = match title.strip_prefix('@') {
                Some(rest) => {
                    let (major, title) = rest.split_once(' ').unwrap();
                    (major.parse().unwrap(), title)
                }
                None => (18, title),
            };
            let (wanted, rule) = expected.split_once(':').unwrap_or((expected, ""));
            let (class, rules) = class_of(sql, server);
            count += 1;
            if class.to_string() != wanted
                || !rule.is_empty() && !rules.split(' ').any(|one| one == rule)
            {
                wrong.push(format!(
                    "{class} ({rules}) instead of {expected}: {list}, {title}"
                ));
            }
        }
    }
    assert!(count >= 150, "{count} migrations");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
