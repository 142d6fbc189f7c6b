//! From text to lines; each mistake with its line.

use std::collections::BTreeMap;

use super::{LOCK_FILE, LockFile, LockLine};
use crate::change::{Kind, Phase, PhaseOf, Problem, Problems};

impl LockFile {
    /// Reads it. `path` is how messages call the file.
    pub fn parse(text: &str, path: &str) -> Result<Self, Problems> {
        let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines: Vec<LockLine> = Vec::new();
        let mut problems = Vec::new();
        let mut places: BTreeMap<PhaseOf, usize> = BTreeMap::new();
        for (index, content) in plain.lines().enumerate() {
            let line = index + 1;
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            match one(content) {
                Err((what, help)) => {
                    problems.push(Problem::of_file(path, what, help).at(line));
                }
                Ok((at, sha256)) => {
                    if let Some(before) = places.get(&at) {
                        let what = format!("{at} stands there already, in line {before}");
                        let help = "remove the second line: a phase is executed once";
                        problems.push(Problem::of_file(path, what, help).at(line));
                    }
                    let later = Phase::ALL.into_iter().filter(|phase| *phase > at.phase);
                    for phase in later {
                        let id = at.id.clone();
                        if let Some(before) = places.get(&PhaseOf { id, phase }) {
                            let what =
                                format!("{at} comes after its {phase}, which is line {before}");
                            let help = "put the lines back as they were committed";
                            problems.push(
                                Problem::of_file(path, what, help)
                                    .at(line)
                                    .kind(Kind::Checksum),
                            );
                        }
                    }
                    places.insert(at.clone(), line);
                    lines.push(LockLine { at, sha256, line });
                }
            }
        }
        Problems::none_of(problems)?;
        let text = plain.replace("\r\n", "\n");
        Ok(Self { lines, text })
    }
}

fn one(content: &str) -> Result<(PhaseOf, String), (String, &'static str)> {
    if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"]
        .iter()
        .any(|mark| content.starts_with(mark))
    {
        return Err((
            "a mark of an unfinished merge".to_owned(),
            "keep the lines of both sides, those of the branch that is merged into first, remove the marks, then run `aegis migrate seal`",
        ));
    }
    let help = "a line is ID PHASE SHA256, as `aegis migrate seal` writes it";
    let words: Vec<&str> = content.split_whitespace().collect();
    let [id, phase, sha256] = words[..] else {
        let what = format!(
            "{} words in a line of {LOCK_FILE}, which has 3",
            words.len()
        );
        return Err((what, help));
    };
    let at = PhaseOf {
        id: id.parse().map_err(|what| (what, help))?,
        phase: phase.parse().map_err(|what| (what, help))?,
    };
    let is_hash = sha256.len() == 64
        && sha256
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if !is_hash {
        let what = format!("`{}` is no SHA-256 in hex", sha256.escape_default());
        return Err((what, help));
    }
    Ok((at, sha256.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn refused(text: &str) -> String {
        LockFile::parse(text, "m/migrations.lock")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_appended_is_read_again_and_nothing_above_it_moves() {
        let mut lock = LockFile::default();
        for at in [
            "20261129T1030_a:expand",
            "20261129T1031_b:expand",
            "20261129T1030_a:migrate",
        ] {
            let before = lock.text().to_owned();
            lock.append(at.parse().unwrap(), HASH.to_owned());
            assert!(lock.text().starts_with(&before));
            assert_eq!(LockFile::parse(lock.text(), "x").unwrap(), lock);
        }
        let crlf = lock.text().replace('\n', "\r\n");
        assert_eq!(LockFile::parse(&crlf, "x").unwrap(), lock);
    }

    #[test]
    fn one_line_gets_another_hash_and_the_others_stay() {
        let mut lock = LockFile::default();
        let (a, b): (PhaseOf, PhaseOf) = (
            "20261129T1030_a:expand".parse().unwrap(),
            "20261129T1031_b:expand".parse().unwrap(),
        );
        lock.append(a.clone(), HASH.to_owned());
        lock.append(b, HASH.to_owned());
        let other = "0".repeat(64);
        assert!(lock.replace(&a, &other));
        let read = LockFile::parse(lock.text(), "x").unwrap();
        assert_eq!(read, lock);
        assert_eq!(read.lines[0].sha256, other);
        assert_eq!(read.lines[1].sha256, HASH);
    }

    #[test]
    fn each_mistake_is_told_with_its_line() {
        let a = format!("20261129T1030_a expand {HASH}\n");
        let text = format!("# x\n{a}{a}");
        let told = refused(&text);
        assert!(
            told.starts_with(
                "m/migrations.lock:3: 20261129T1030_a:expand stands there already, in line 2"
            ),
            "{told}"
        );
        let told = refused(&format!("{a}<<<<<<< HEAD\n{a}"));
        assert!(
            told.starts_with("m/migrations.lock:2: a mark of an unfinished merge"),
            "{told}"
        );
        assert!(refused("20261129T1030_a expand\n").contains(":1: 2 words"));
        assert!(refused("20261129T1030_a switch aa\n").contains("`switch` is no phase"));
        assert!(refused("20261129T1030_a expand AA\n").contains("`AA` is no SHA-256"));
        let swapped = format!("20261129T1030_a migrate {HASH}\n{a}");
        let problems = LockFile::parse(&swapped, "x").unwrap_err();
        assert_eq!(problems.exit_code(), 11);
        assert!(
            problems
                .to_string()
                .contains("comes after its migrate, which is line 1")
        );
    }
}
