//! Folders that do not do: full, read-only, closed, somebody else's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aegis_devpg::{Data, Error, Options, Server, remove_data};

use crate::helper::{self, Helper};
use crate::support::{Mounted, ask, only_entry, open_folder, root_or_skip};

fn start(root: &Path) -> Result<Server, Error> {
    Server::start(&Options {
        data: Data::Kept(root.to_path_buf()),
        ..Options::for_tests()
    })
}

/// The error with its sources, as the command line shows it.
fn whole(error: &dyn std::error::Error) -> String {
    let source = error.source().map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

#[test]
fn a_full_folder_is_told_before_the_start() {
    let folder = open_folder();
    let Some(_tmpfs) = Mounted::tmpfs("a_full_folder", folder.path(), "size=20m") else {
        return;
    };
    let error = start(folder.path()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NoSpace {
                free_mib: ..=20,
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_folder_that_fills_during_initdb_is_told_with_its_words_process() {
    let folder = open_folder();
    let options = "size=200m,nr_inodes=300";
    let Some(_tmpfs) = Mounted::tmpfs("a_folder_that_fills", folder.path(), options) else {
        return;
    };
    let error = start(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Init { .. }), "{error:?}");
    assert!(error.to_string().contains("No space left"), "{error}");
}

#[test]
fn a_read_only_folder_is_told() {
    let folder = open_folder();
    let Some(_tmpfs) = Mounted::tmpfs("a_read_only_folder", folder.path(), "ro") else {
        return;
    };
    for root in [folder.path().to_path_buf(), folder.path().join("new")] {
        let said = whole(&start(&root).unwrap_err());
        assert!(said.contains("Read-only file system"), "{said}");
    }
}

#[test]
fn a_folder_closed_to_the_servers_user_is_told_and_not_opened() {
    if !root_or_skip("a_closed_folder", "only root drops to another user") {
        return;
    }
    let folder = open_folder();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    let error = start(&folder.path().join("kept")).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn binaries_closed_to_the_servers_user_are_told() {
    if !root_or_skip("closed_binaries", "only root drops to another user") {
        return;
    }
    let (closed, real) = (open_folder(), aegis_devpg::find_binaries(None).unwrap());
    let bin = closed.path().join("bin");
    std::os::unix::fs::symlink(real.bin, &bin).unwrap();
    fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    let options = Options {
        binaries: Some(bin),
        ..Options::for_tests()
    };
    let error = Server::start(&options).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
}

#[test]
fn a_closed_home_moves_dev_data_to_the_servers_user_and_says_so_process() {
    if !root_or_skip("a_closed_home", "only root drops to another user") {
        return;
    }
    let home = open_folder();
    let ask_folder = |mode| {
        fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
        let mut command = helper::command("dev-folder");
        command
            .env("HOME", home.path())
            .env_remove("XDG_STATE_HOME");
        let mut helper = Helper::run(command);
        (helper.hear(), helper.hear())
    };
    let (path, note) = ask_folder(0o755);
    assert!(Path::new(&path).starts_with(home.path()), "{path}");
    assert_eq!(note, "no note");
    let (path, note) = ask_folder(0o700);
    assert!(!Path::new(&path).starts_with(home.path()), "{path}");
    assert!(note.contains(&path), "{note}");
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let folder = open_folder();
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let before = fs::metadata(folder.path()).unwrap().permissions().mode();
    let error = start(folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error:?}");
    let after = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(before, after);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn paths_that_a_pid_file_cannot_hold_are_told() {
    let error = start(Path::new("/tmp/a\nb")).unwrap_err();
    assert!(matches!(error, Error::BadPath { .. }), "{error:?}");
    assert!(!Path::new("/tmp/a\nb").exists());
}

#[test]
fn data_of_another_major_are_told_and_kept_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    start(&root).unwrap().stop();
    fs::write(root.join("data/PG_VERSION"), "14\n").unwrap();
    let error = start(&root).unwrap_err();
    assert!(
        matches!(error, Error::OtherMajor { data: 14, .. }),
        "{error:?}"
    );
}

#[test]
fn an_unusable_tmpdir_falls_back_to_another_process() {
    let folder = open_folder();
    let Some(_tmpfs) = Mounted::tmpfs("an_unusable_tmpdir", folder.path(), "ro") else {
        return;
    };
    let mut helper = Helper::serve(folder.path(), None);
    assert_eq!(ask(&helper.hear(), "select 1").unwrap(), "1");
    helper.end();
}

#[test]
fn a_long_tmpdir_with_spaces_does_process() {
    let folder = open_folder();
    let temp = folder.path().join("a long name ".repeat(8));
    fs::create_dir(&temp).unwrap();
    fs::set_permissions(&temp, Permissions::from_mode(0o1777)).unwrap();
    let mut helper = Helper::serve(&temp, None);
    let url = helper.hear();
    assert_eq!(ask(&url, "select 1").unwrap(), "1");
    assert!(only_entry(&temp).is_some());
    helper.end();
    crate::support::eventually("it is removed", 20, || only_entry(&temp).is_none());
}

#[test]
fn data_are_removed_only_when_nobody_uses_them_and_they_are_ours_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    let server = start(&root).unwrap();
    let running = remove_data(&root).unwrap_err();
    assert!(
        matches!(running, Error::AlreadyRunning { .. }),
        "{running:?}"
    );
    assert!(server.data_dir().join("PG_VERSION").exists());
    server.stop();
    remove_data(&root).unwrap();
    assert!(!root.join("data").exists() && !root.join("password").exists());
    // Removing nothing is no error, and the next start makes new data.
    remove_data(&root).unwrap();
    start(&root).unwrap().stop();

    let foreign = open_folder();
    fs::write(foreign.path().join("letter"), "dear").unwrap();
    fs::create_dir(foreign.path().join("data")).unwrap();
    let error = remove_data(foreign.path()).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error:?}");
    assert!(foreign.path().join("letter").exists() && foreign.path().join("data").exists());
}
