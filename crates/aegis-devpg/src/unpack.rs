//! Unpacks the archive of the binaries: a zip that holds one `.txz`, a tar compressed by xz.
//!
//! Only for archives whose hash is known; links and paths are confined to the folder all the
//! same.

use std::borrow::Cow;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lzma_rust2::XzReader;
use zip::ZipArchive;

/// Unpacks `jar` into `folder`, which is made, readable by everybody.
pub(crate) fn unpack(jar: &Path, folder: &Path) -> io::Result<()> {
    let mut zip = ZipArchive::new(BufReader::new(File::open(jar)?)).map_err(io::Error::other)?;
    let inner = zip
        .file_names()
        .filter_map(Result::ok)
        .find(|name| name.ends_with(".txz"))
        .map(Cow::into_owned)
        .ok_or_else(|| io::Error::other("the archive holds no .txz"))?;
    let inner = zip.by_name(&inner).map_err(io::Error::other)?;
    fs::create_dir(folder)?;
    // Root's umask or a temporary folder's mode must not lock out the user of the server.
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    untar(XzReader::new(BufReader::new(inner), true), folder)
}

fn untar(tar: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(BufReader::with_capacity(1 << 16, tar));
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(false);
    archive.unpack(folder)
}
