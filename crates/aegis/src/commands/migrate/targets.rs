//! Which databases a verb is about: those of `targets.toml` where it is there and none is named, else the one of the command line.

use aegis_migrate::change::Problems;
use aegis_migrate::set::Set;
use aegis_migrate::targets::{self, Stop, Target};

use super::{Place, connect};
use crate::failure::Failure;

/// The databases, with how many at once.
pub(crate) struct Resolved {
    pub(crate) targets: Vec<Target>,
    pub(crate) parallel: usize,
    /// When no further one is begun.
    pub(crate) stop: Stop,
    /// Whether targets.toml names them.
    pub(crate) is_many: bool,
}

/// Names every database, before any is touched.
pub(crate) async fn resolve(set: &Set, place: &Place<'_>) -> Result<Resolved, Failure> {
    let file = targets::read(set.files())?;
    match file {
        Some(file) if place.database.given().is_none() => {
            let variable = |name: &str| std::env::var(name).ok();
            let found = targets::resolve(&file, variable, |url| async move {
                connect(&url).await.map_err(|failure| failure.to_string())
            });
            Ok(Resolved {
                targets: found.await.map_err(Problems::from)?,
                parallel: file.parallel,
                stop: file.stop,
                is_many: true,
            })
        }
        _ => Ok(Resolved {
            targets: vec![Target {
                name: "database".to_owned(),
                url: place.database.direct()?.to_owned(),
                schema: None,
            }],
            parallel: 1,
            stop: Stop::First,
            is_many: false,
        }),
    }
}
