//! Files as people write them for Rails, Django, Flyway, goose and sqlx, good and bad, without a catalog: what must be caught, what
//! must pass. A line of the list is one file.

use crate::classes::class_of;

/// Class, perhaps a rule, perhaps the server's major, then the file.
pub(super) const CORPUS: &str = include_str!("hostile.txt");

#[test]
fn every_file_of_the_list_has_its_class() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CORPUS
        .lines()
        .chain(include_str!("stranger.txt").lines())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (expected, mut sql) = line.split_once(' ').unwrap();
        let mut server = 18;
        if let Some(rest) = sql.strip_prefix('@') {
            let (major, rest) = rest.split_once(' ').unwrap();
            server = major.parse().unwrap();
            sql = rest;
        }
        let (wanted, rule) = expected.split_once(':').unwrap_or((expected, ""));
        let (class, rules) = class_of(sql, server);
        count += 1;
        if class.to_string() != wanted
            || !rule.is_empty() && !rules.split(' ').any(|one| one == rule)
        {
            wrong.push(format!("{class} ({rules}) instead of {expected}: {sql}"));
        }
    }
    assert!(count >= 200, "{count} files");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
