//! Where `aegis dev` keeps its data when it is not told.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::Error;
use crate::user;

/// Where `aegis dev` keeps its data, and why there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevFolder {
    /// The folder, for [`Data::Kept`](crate::Data::Kept). It may not exist yet.
    pub path: PathBuf,
    /// Set when it is not the caller's own state folder: one sentence for people.
    pub note: Option<String>,
}

/// The folder for kept development data: `aegis/dev/postgres` in the user's state folder; or,
/// when that is closed to the ordinary user that root drops to, a folder of that user.
pub fn default_dev_folder() -> Result<DevFolder, Error> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|state| state.is_absolute())
        .or_else(|| home.map(|home| home.join(".local/state")));
    let own = state.map(|state| state.join("aegis/dev/postgres"));
    let owner = own.as_ref().and_then(|own| fs::metadata(own).ok());
    let Some(user) = user::choose(owner.map(|own| own.uid()))? else {
        let path = own.unwrap_or_else(|| std::env::temp_dir().join("aegis-dev-postgres"));
        return Ok(DevFolder { path, note: None });
    };
    if let Some(own) = own.filter(|own| user::reaches(&user, own)) {
        return Ok(DevFolder {
            path: own,
            note: None,
        });
    }
    let path = if user.home.is_absolute() && user::passes(Some(&user), "-w", &user.home) {
        user.home.join("aegis/dev/postgres")
    } else {
        PathBuf::from("/var/lib/aegis/dev").join(&user.name)
    };
    let note = format!(
        "PostgreSQL runs as `{}`, which cannot enter the state folder of root: its data are in {}",
        user.name,
        path.display()
    );
    Ok(DevFolder {
        path,
        note: Some(note),
    })
}
