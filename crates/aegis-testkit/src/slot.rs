//! A semaphore across processes: tests that start processes hold a slot, so that a run on few
//! cores does not time out by its own weight.
//!
//! A slot is a lock on a file, which the system frees however the holder ends.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

const SLOTS: usize = 2;
const BOUND: Duration = Duration::from_mins(15);

/// A held slot; dropping it frees it.
#[derive(Debug)]
pub struct ProcessSlot {
    _lock: File,
    number: usize,
}

impl ProcessSlot {
    /// Which of the slots, from 0.
    pub fn number(&self) -> usize {
        self.number
    }
}

/// Waits for one of the two slots of this machine's user. Blocks its thread: call it first in the
/// test. Panics after 15 minutes.
pub fn process_slot() -> ProcessSlot {
    take_slot(&folder(), SLOTS, BOUND)
}

fn folder() -> PathBuf {
    let user = nix::unistd::geteuid();
    std::env::temp_dir().join(format!("aegis-process-slots-{user}"))
}

fn take_slot(folder: &std::path::Path, slots: usize, bound: Duration) -> ProcessSlot {
    fs::create_dir_all(folder).expect("make the folder of the process slots");
    let deadline = Instant::now() + bound;
    loop {
        for number in 0..slots {
            let path = folder.join(number.to_string());
            let file = File::options()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap_or_else(|error| panic!("open {}: {error}", path.display()));
            match file.try_lock() {
                Ok(()) => {
                    return ProcessSlot {
                        _lock: file,
                        number,
                    };
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => panic!("lock {}: {error}", path.display()),
            }
        }
        assert!(
            Instant::now() < deadline,
            "no process slot was free within {} s: see who holds {}",
            bound.as_secs(),
            folder.display()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_are_given_and_the_third_waits_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let take = |bound_ms| {
            let folder = folder.path().to_path_buf();
            thread::spawn(move || take_slot(&folder, 2, Duration::from_millis(bound_ms))).join()
        };
        let first = take(1000).unwrap();
        let second = take(1000).unwrap();
        assert_ne!(first.number(), second.number());
        assert!(take(50).is_err(), "a third slot was given");
        let freed = first.number();
        drop(first);
        assert_eq!(take(1000).unwrap().number(), freed);
    }
}
