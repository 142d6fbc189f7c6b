//! Finds what a person means by an id or the beginning of one.

use aegis_model::ErrorCode;
use aegis_store::Store;
use aegis_store::view::Found;
use uuid::Uuid;

use crate::exit::Exit;
use crate::failure::Failure;

/// The task whose id starts like this.
pub(crate) async fn task(store: &Store, prefix: &str) -> Result<Uuid, Failure> {
    match store.find_task(prefix).await? {
        Found::One(id) => Ok(id),
        Found::None => Err(Failure::new(
            Exit::NotFound,
            format!("no task's id starts with `{prefix}`; see `aegis task list`"),
        )
        .with_code(ErrorCode::NOT_FOUND)),
        Found::Several => Err(Failure::new(
            Exit::NotFound,
            format!("more than one task's id starts with `{prefix}`; give more digits"),
        )
        .with_code(ErrorCode::NOT_FOUND)),
    }
}

/// The task and operation of an operation's id, `TASK/NAME/KEY/vN`.
pub(crate) fn operation(id: &str) -> Result<(Uuid, &str), Failure> {
    id.split_once('/').and_then(|(task, _)| Some((Uuid::parse_str(task).ok()?, id))).ok_or_else(|| {
        Failure::new(Exit::NotFound, format!("`{id}` is no operation id; copy one from `aegis operation list` (TASK/NAME/KEY/vN)"))
            .with_code(ErrorCode::NOT_FOUND)
    })
}

/// Who acts: `--actor`, else the user of the shell.
pub(crate) fn actor(given: Option<String>) -> String {
    given
        .or_else(|| std::env::var("USER").ok())
        .unwrap_or_else(|| "unknown".to_owned())
}
