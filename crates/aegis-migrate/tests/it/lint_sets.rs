//! What one change knows of the changes before it.

use aegis_migrate::lint::{Input, Known, lint, read};

use crate::folder::Folder;
use crate::run::change;

const FIRST: &str = "20261129T1030_one";
const SECOND: &str = "20261129T1031_two";

#[test]
fn a_table_of_an_earlier_change_is_there_whatever_if_not_exists_says() {
    let passes = |first: &str| {
        let again = "CREATE TABLE IF NOT EXISTS foo (id bigint, a int);\nCREATE INDEX IF NOT EXISTS foo_a ON foo (a);\n";
        let folder = change(Folder::default(), FIRST, first, None);
        let place = change(folder, SECOND, again, None).on_disk();
        let input = Input {
            path: place.path().to_path_buf(),
            tool: None,
            schema: "public".to_owned(),
        };
        let known = Known {
            server: 18,
            catalog: None,
        };
        let judged = lint(&read(&input, None).unwrap(), known);
        let mut of_second = judged.iter().filter(|one| one.file.contains(SECOND));
        assert!(of_second.next().unwrap().passes);
        of_second.next().unwrap().passes
    };
    assert!(passes("CREATE TABLE bar (id bigint);\n"));
    assert!(!passes("CREATE TABLE foo (id bigint, a int);\n"));
    assert!(!passes(
        "CREATE TABLE IF NOT EXISTS foo (id bigint, a int);\n"
    ));
}

#[test]
fn the_contract_of_an_earlier_change_has_perhaps_not_run_when_the_next_one_expands() {
    let again = "ALTER TABLE users ADD COLUMN name text;\n";
    let after = "20261129T1031_name_again";
    let place = change(Folder::split(), after, again, None).on_disk();
    let input = Input {
        path: place.path().to_path_buf(),
        tool: None,
        schema: "public".to_owned(),
    };
    let known = Known {
        server: 18,
        catalog: None,
    };
    let judged = lint(&read(&input, None).unwrap(), known);
    let one = judged.iter().find(|one| one.file.contains(after)).unwrap();
    assert!(one.rules.contains(&"already-there"), "{one:?}");
    assert!(one.passes, "{one:?}");
}
