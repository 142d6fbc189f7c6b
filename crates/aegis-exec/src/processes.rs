//! Looks at processes and ends them, never a wrong one.
//!
//! Invariant: a process that is not our own child is signalled through a descriptor of it, opened first and then compared
//! with what was looked at: a number that was given to another process meanwhile is left alone.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What identifies a process for the time of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    pid: i32,
    parent: i32,
    /// In ticks since boot.
    started: u64,
    is_zombie: bool,
}

/// Ends every descendant of `ancestor` that a look finds; gives how many those were. Zombies are not counted.
pub(crate) fn kill_descendants(ancestor: i32) -> usize {
    let mut children: HashMap<i32, Vec<Seen>> = HashMap::new();
    for seen in all() {
        children.entry(seen.parent).or_default().push(seen);
    }
    let (mut found, mut open) = (0, vec![ancestor]);
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            if !child.is_zombie {
                found += 1;
                kill(child);
            }
        }
    }
    found
}

/// Ends every process whose environment began with `entry` (`NAME=value`), this one excepted; gives how many a look found.
pub(crate) fn kill_marked(entry: &str) -> usize {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = 0;
    for seen in all() {
        if seen.pid == own || seen.is_zombie || !is_marked(seen.pid, entry) {
            continue;
        }
        found += 1;
        kill(seen);
    }
    found
}

fn is_marked(pid: i32, entry: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment
            .split(|&byte| byte == 0)
            .any(|one| one == entry.as_bytes())
    })
}

/// One that is gone already needs no end.
fn kill(seen: Seen) {
    let Some(pid) = Pid::from_raw(seen.pid) else {
        return;
    };
    if let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty())
        && look(seen.pid).is_some_and(|now| now.started == seen.started)
    {
        pidfd_send_signal(descriptor, Signal::KILL).ok();
    }
}

fn all() -> impl Iterator<Item = Seen> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(look)
}

fn look(pid: i32) -> Option<Seen> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state parent …`, where the name may hold anything; the 22nd field is the start.
fn parse(pid: i32, stat: &str) -> Option<Seen> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Seen {
        pid,
        parent,
        started,
        is_zombie: state == "Z" || state == "X",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) S 9 (b) Z 3 7 7 0 -1 4194560 103 0 0 0 0 0 0 0 20 0 1 0 8812 1 2 3";
        let seen = parse(7, stat).unwrap();
        assert_eq!((seen.parent, seen.started, seen.is_zombie), (3, 8812, true));
        assert_eq!(parse(7, "7 (a"), None);
    }

    #[test]
    fn this_process_is_found_with_its_parent() {
        let own = i32::try_from(std::process::id()).unwrap();
        let seen = all().find(|seen| seen.pid == own).unwrap();
        assert!(seen.parent > 0 && seen.started > 0 && !seen.is_zombie);
    }
}
