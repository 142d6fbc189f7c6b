//! The statements of a store as they stand in its files, before a server has seen them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Mistake;
use super::header::{self, Fence, Header};
use super::names::is_snake_case;
use super::scan::{Scanned, scan};
use super::source::expand;

/// One file of `sql/<aggregate>/`.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) aggregate: String,
    pub(super) verb: String,
    /// Path below the store's folder.
    pub(super) file: String,
    pub(super) header: Header,
    /// One, or one for each batch size.
    pub(super) texts: Vec<Scanned>,
}

/// Files of a folder with this extension (`""`: folders), sorted by name; none if the folder is missing.
pub(super) fn sorted(folder: &Path, extension: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot list {}", folder.display()))?
            .path();
        let matches = match extension {
            "" => path.is_dir(),
            wanted => path.is_file() && path.extension().is_some_and(|found| found == wanted),
        };
        if let (true, Some(stem)) = (matches, path.file_stem().and_then(|stem| stem.to_str())) {
            found.push((stem.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads every statement of the store; what is wrong goes to `mistakes`.
pub(super) fn load_all(
    store: &Path,
    mistakes: &mut Vec<Mistake>,
) -> anyhow::Result<Vec<Statement>> {
    let sql = store.join("sql");
    let mut statements = Vec::new();
    for (aggregate, folder) in sorted(&sql, "")? {
        if aggregate == "include" {
            continue;
        }
        for (verb, path) in sorted(&folder, "sql")? {
            let file = format!("sql/{aggregate}/{verb}.sql");
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            match load(&sql, &aggregate, &verb, &file, &text) {
                Ok(statement) => statements.push(statement),
                Err(found) => mistakes.extend(found),
            }
        }
    }
    Ok(statements)
}

fn load(
    sql: &Path,
    aggregate: &str,
    verb: &str,
    file: &str,
    text: &str,
) -> Result<Statement, Vec<Mistake>> {
    let whole = |what: String| {
        vec![Mistake {
            file: file.to_owned(),
            at: (0, 0),
            what,
        }]
    };
    for name in [aggregate, verb] {
        if !is_snake_case(name) {
            return Err(whole(format!(
                "`{name}` becomes a Rust name and must be in snake_case"
            )));
        }
    }
    let header = header::parse(file, text)?;
    let body: String = text.lines().skip(header.body_line as usize - 1).fold(
        String::with_capacity(text.len()),
        |mut body, line| {
            body.push_str(line);
            body.push('\n');
            body
        },
    );
    let mut includes = Vec::new();
    let chars = expand(sql, file, &body, header.body_line, &mut includes)
        .map_err(|mistake| vec![mistake])?;
    if let Fence::Includes(fences) = &header.fence
        && let Some(fence) = fences.iter().find(|fence| !includes.contains(fence))
    {
        let what = format!("the fence `{fence}` is not included: write `-- include: {fence}`");
        return Err(vec![Mistake {
            file: file.to_owned(),
            at: (header.fence_line, 1),
            what,
        }]);
    }

    let sizes: Vec<Option<usize>> = match header.batch.as_slice() {
        [] => vec![None],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let texts = sizes
        .into_iter()
        .map(|size| scan(&chars, size))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|mistake| vec![mistake])?;
    if texts.iter().any(|scanned| scanned.text.is_empty()) {
        return Err(whole("there is no statement after the head".to_owned()));
    }
    if !header.batch.is_empty() && texts.iter().any(|scanned| !scanned.uses_batch) {
        return Err(whole(
            "the head says `batch`, but `:batch!` stands nowhere".to_owned(),
        ));
    }
    if let Some(param) = texts[0]
        .params
        .iter()
        .find(|param| RESERVED.contains(&param.name.as_str()))
    {
        return Err(whole(format!(
            "`:{}` is taken by the generated function; rename it",
            param.name
        )));
    }
    let (aggregate, verb) = (aggregate.to_owned(), verb.to_owned());
    Ok(Statement {
        aggregate,
        verb,
        file: file.to_owned(),
        header,
        texts,
    })
}

/// Names that the body of a generated function uses itself.
const RESERVED: [&str; 5] = ["session", "batch", "text", "row", "rows"];

#[cfg(test)]
mod tests {
    //! Mistakes that need the whole file.

    use super::load_all;

    const HEAD: &str =
        "-- Says one.\n-- lock: none\n-- index: none\n-- fence: none: reads\n-- returns: one\n";

    fn complaint(path: &str, text: &str) -> String {
        let store = tempfile::tempdir().unwrap();
        let file = store.path().join("sql").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        let mut mistakes = Vec::new();
        load_all(store.path(), &mut mistakes).unwrap();
        mistakes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_good_file_has_no_mistake() {
        assert_eq!(
            complaint("task/say.sql", &format!("{HEAD}SELECT 1 AS one")),
            ""
        );
    }

    #[test]
    fn a_fence_must_be_included() {
        let head = HEAD.replace("none: reads", "guard.sql");
        let said = complaint("task/say.sql", &format!("{head}SELECT 1"));
        assert_eq!(
            said,
            "sql/task/say.sql:4:1: the fence `guard.sql` is not included: write `-- include: guard.sql`"
        );
    }

    #[test]
    fn names_bodies_and_batches_are_checked() {
        assert!(complaint("task/Say.sql", &format!("{HEAD}SELECT 1")).contains("snake_case"));
        assert!(complaint("task/say.sql", HEAD).contains("no statement after the head"));
        assert!(
            complaint("task/say.sql", &format!("{HEAD}-- batch: 1\nSELECT 1"))
                .contains("stands nowhere")
        );
        assert!(complaint("task/say.sql", &format!("{HEAD}SELECT :rows")).contains("rename it"));
    }
}
