//! `contract collect`: reads what a cluster listed, and signs what it says of older programs. It needs no database.
//!
//! Invariants: what the list does not show is unknown, and a bundle says so too; only somebody who may observe signs.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aegis_migrate::change::ChangeId;
use aegis_migrate::contract::bundle::{self, Bundle, open_bundle};
use aegis_migrate::contract::cluster::{self, Asked, Known};
use aegis_migrate::contract::need::Need;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::{failure, keyring, sign};
use crate::commands::migrate::Place;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

/// Below its help.
pub(super) const AFTER: &str = "The list is what `kubectl get pods,replicasets,deployments,statefulsets,daemonsets,cronjobs,jobs -A -o json` prints. Whose it is, \
    --app or --image-of tells; whatever of it --knows does not tell counts as old. A list that is malformed, partial, empty of the \
    application or too old is unknown, never none. The bundle goes to `contract observe ID --bundle FILE`, again and again while the \
    observation lasts; examples/split-name/deploy/collector.yaml does it every two minutes.";

#[derive(Debug, Args)]
pub(super) struct CollectArguments {
    /// The change.
    #[arg(value_name = "ID")]
    id: ChangeId,
    /// What is told of; without it both.
    #[arg(long, value_name = "pods|cronjobs", value_parser = kind)]
    kind: Vec<Need>,
    /// The list, as JSON; `-` for the standard input.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// When the list was taken; without it when the file was last written, or now for the standard input.
    #[arg(long, value_name = "TIME")]
    taken_at: Option<Timestamp>,
    /// A label of the application's workloads; all that are given must be there.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, required_unless_present = "image_of")]
    app: Vec<(String, String)>,
    /// The repository of an image of the application, without tag and digest.
    #[arg(long, value_name = "REPOSITORY")]
    image_of: Vec<String>,
    /// What is known to be new: a digest (sha256:…), an image, or KEY=VALUE of a label or an annotation.
    #[arg(long, value_name = "WHAT", required = true)]
    knows: Vec<String>,
    /// What is scaled to zero or suspended does not count, though it can be brought back.
    #[arg(long)]
    allow_idle: bool,
    /// Where this was seen, as CLUSTER/NAMESPACE. Each source that ever told must hold.
    #[arg(long, value_name = "TEXT")]
    source: String,
    /// The collector's private key, Ed25519 in PEM.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the signed bundle goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

fn kind(text: &str) -> Result<Need, String> {
    match Need::from_name(text) {
        Some(need @ (Need::Pods | Need::Cronjobs)) => Ok(need),
        _ => Err("one of pods, cronjobs".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("is no KEY=VALUE".to_owned()),
    }
}

pub(super) fn run(
    arguments: &CollectArguments,
    place: &Place<'_>,
    approvers: &Path,
) -> Result<Exit, Failure> {
    let keyring = keyring(approvers)?;
    let now = Timestamp::now();
    let (text, written) = list(&arguments.from)?;
    let at = arguments.taken_at.or(written).unwrap_or(now);
    let asked = Asked {
        labels: arguments.app.clone(),
        repositories: arguments.image_of.clone(),
        known: arguments.knows.iter().map(|one| Known::read(one)).collect(),
        allow_idle: arguments.allow_idle,
    };
    let kinds = if arguments.kind.is_empty() {
        &[Need::Pods, Need::Cronjobs][..]
    } else {
        &arguments.kind
    };
    let age = keyring.bundle_age();
    let facts: Vec<bundle::Seen> = kinds
        .iter()
        .map(|need| cluster::seen(*need, &text, &asked, at, now, age))
        .collect();
    let is_known = facts.iter().all(|seen| seen.holds.is_some());
    let change = arguments.id.to_string();
    let bundle = Bundle {
        change: change.clone(),
        environment: keyring.environment().to_owned(),
        source: arguments.source.clone(),
        // That nothing is known is so now, however old the list is.
        at: if is_known { at } else { now },
        facts,
    };
    let payload = serde_json::to_vec(&bundle).map_err(|error| sign::broken(&error))?;
    let envelope = sign::sign(&arguments.key, bundle::BUNDLE, &payload, &keyring)?;
    // Whoever may not observe learns it here, and not when it is handed in.
    let named = arguments.key.display().to_string();
    let (_, by) = open_bundle(&envelope, &keyring, &change, None, now, &named)
        .map_err(|error| failure(&error.into()))?;
    let text = serde_json::to_string_pretty(&envelope).map_err(|error| sign::broken(&error))?;
    std::fs::write(&arguments.out, format!("{text}\n")).map_err(|error| {
        let what = format!("{} cannot be written: {error}", arguments.out.display());
        Failure::new(Exit::Migrate(2), what)
    })?;
    let rows = bundle.facts.iter().map(|seen| {
        vec![
            seen.need.to_string(),
            super::observe::holds(seen.holds).to_owned(),
            seen.detail.clone(),
        ]
    });
    let documents = bundle.facts.iter().map(|seen| {
        json!({ "need": seen.need, "holds": seen.holds, "source": bundle.source, "by": by, "at": bundle.at, "detail": seen.detail })
    });
    place.output.list(
        &["fact", "holds", "detail"],
        rows.collect(),
        documents.collect(),
    );
    note(&format!(
        "next: `aegis migrate contract observe {change} --bundle {}`, before {} s are over",
        arguments.out.display(),
        age.as_secs()
    ));
    Ok(Exit::Done)
}

/// The list, and when it was written.
fn list(file: &Path) -> Result<(String, Option<Timestamp>), Failure> {
    let refuse = |error: std::io::Error| {
        let what = format!("{} cannot be read: {error}", file.display());
        Failure::new(Exit::Migrate(2), what)
    };
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(refuse)?;
        return Ok((String::from_utf8_lossy(&bytes).into_owned(), None));
    }
    let bytes = std::fs::read(file).map_err(refuse)?;
    let written = std::fs::metadata(file).and_then(|meta| meta.modified());
    let written = Timestamp::try_from(written.map_err(refuse)?).ok();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), written))
}
