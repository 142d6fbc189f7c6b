//! Puts the table between its markers in the page.
//!
//! Never: a table of a run in which something was skipped, failed, or not asked for.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use super::catalog::PEERS;
use super::late::Case;
use super::results::Results;

const BEGIN: &str = "<!-- generated: peers -->";
const END: &str = "<!-- end of peers -->";

/// Writes the block.
pub(crate) fn write(page: &Path, results: &Results, section: &str) -> anyhow::Result<()> {
    whole(results)?;
    let text = std::fs::read_to_string(page).context("it cannot be read")?;
    std::fs::write(page, replaced(&text, section)?).context("it cannot be written")
}

/// Whether everything is there.
fn whole(results: &Results) -> anyhow::Result<()> {
    let rounds = results.setting.rounds as usize;
    ensure!(
        results.limits.len() == rounds,
        "the limits were not measured; run without --only and --items"
    );
    for peer in &PEERS {
        let engine = results
            .engines
            .iter()
            .find(|engine| engine.name == peer.name);
        let Some(engine) = engine else {
            bail!("{} was not asked for; run without --only", peer.name);
        };
        if let Some(reason) = &engine.skipped {
            bail!("{} was skipped: {reason}", peer.name);
        }
        let all = engine.failed.is_empty()
            && engine.throughput.len() == rounds
            && (engine.throughput_roomy.len() == rounds
                || peer.roomy == results.setting.concurrency)
            && engine.latency.len() == rounds
            && !engine.takeover.is_empty()
            && engine.late.len() == Case::of(peer).len();
        ensure!(
            all,
            "{} has not been measured in all items; run without --items, or look at what failed",
            peer.name
        );
    }
    Ok(())
}

fn replaced(text: &str, section: &str) -> anyhow::Result<String> {
    let find = |marker: &str| {
        text.find(marker)
            .with_context(|| format!("it has no line `{marker}`"))
    };
    let (begin, end) = (find(BEGIN)? + BEGIN.len(), find(END)?);
    ensure!(begin <= end, "`{END}` stands before `{BEGIN}`");
    Ok(format!(
        "{}\n\n{}\n\n{}",
        &text[..begin],
        section.trim(),
        &text[end..]
    ))
}

#[cfg(test)]
mod tests {
    //! Markers, and their absence.

    use super::{BEGIN, END, replaced};

    #[test]
    fn what_is_between_the_markers_is_replaced_and_nothing_else() {
        let page = format!("# A\n{BEGIN}\n\nold\n\n{END}\nmine\n");
        let new = replaced(&page, "new\n").unwrap();
        assert_eq!(new, format!("# A\n{BEGIN}\n\nnew\n\n{END}\nmine\n"));
        assert_eq!(replaced(&new, "new\n").unwrap(), new);
    }

    #[test]
    fn a_page_without_markers_is_refused() {
        for page in [
            "# A\n".to_owned(),
            format!("{BEGIN}\n"),
            format!("{END}\n{BEGIN}\n"),
        ] {
            assert!(replaced(&page, "new").is_err(), "{page}");
        }
    }
}
