//! What a list of a cluster (`kubectl get … -o json`) says of programs that are older than a contract.
//!
//! Invariants: a program is old unless it is known to be new, so one that nobody has heard of counts as old; a list that is malformed,
//! partial, empty of the application, or too old says nothing, which is never "none".

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::bundle::Seen;
use super::need::Need;

/// What is looked for in a list.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Labels, all of which a workload of the application has.
    pub labels: Vec<(String, String)>,
    /// Repositories of the application's images; a workload with one of them is the application's.
    pub repositories: Vec<String>,
    /// What is known to be new: an image, a digest (`sha256:…`), or `KEY=VALUE` of a label or an annotation.
    pub known: Vec<Known>,
    /// Whether what is scaled to zero or suspended does not count: nothing of it runs, but it can be brought back.
    pub allow_idle: bool,
}

/// How a new program is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// `sha256:…`: of the image that runs.
    Digest(String),
    /// The image as the workload names it. A tag may be moved; a digest may not.
    Image(String),
    /// A label or an annotation.
    Label(String, String),
}

impl Known {
    /// Reads one.
    pub fn read(text: &str) -> Self {
        if text.starts_with("sha256:") {
            return Self::Digest(text.to_owned());
        }
        match text.split_once('=') {
            Some((key, value)) => Self::Label(key.to_owned(), value.to_owned()),
            None => Self::Image(text.to_owned()),
        }
    }
}

#[derive(Deserialize)]
struct List {
    kind: String,
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Item>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    r#continue: Option<String>,
    remaining_item_count: Option<i64>,
}

#[derive(Deserialize)]
struct Item {
    kind: Option<String>,
    metadata: Meta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    owner_references: Vec<Owner>,
    creation_timestamp: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    suspend: Option<bool>,
    template: Option<Template>,
    job_template: Option<JobTemplate>,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    ephemeral_containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Template {
    #[serde(default)]
    metadata: Meta,
    spec: Box<Spec>,
}

#[derive(Deserialize)]
struct JobTemplate {
    spec: JobSpec,
}

#[derive(Deserialize)]
struct JobSpec {
    template: Template,
}

#[derive(Deserialize)]
struct Container {
    image: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    replicas: Option<i64>,
    active: Option<serde_json::Value>,
    completion_time: Option<Timestamp>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default)]
    image: String,
    #[serde(rename = "imageID", default)]
    image_id: String,
}

/// What the list, taken at `at`, says of `need` at `now`. `max_age` is how old it may be.
pub fn seen(
    need: Need,
    text: &str,
    asked: &Asked,
    at: Timestamp,
    now: Timestamp,
    max_age: SignedDuration,
) -> Seen {
    let (holds, detail) = match judged(need, text, asked, at, now, max_age) {
        Ok(none) => (Some(true), none),
        Err(Says::Old(old)) => (Some(false), old),
        Err(Says::Nothing(why)) => (None, why),
    };
    Seen {
        need,
        holds,
        detail,
    }
}

enum Says {
    Old(String),
    Nothing(String),
}

fn nothing<T>(why: impl Into<String>) -> Result<T, Says> {
    Err(Says::Nothing(why.into()))
}

fn judged(
    need: Need,
    text: &str,
    asked: &Asked,
    at: Timestamp,
    now: Timestamp,
    max_age: SignedDuration,
) -> Result<String, Says> {
    let age = now.duration_since(at);
    if age > max_age || age < SignedDuration::from_secs(-60) {
        return nothing(format!(
            "the list was taken at {at}, and it is {now}; it may be {} s old",
            max_age.as_secs()
        ));
    }
    let list: List = match serde_json::from_str(text) {
        Ok(list) => list,
        Err(error) => return nothing(format!("the list cannot be read: {error}")),
    };
    let Some(of) = list.kind.strip_suffix("List") else {
        return nothing(format!("a {} is no list", list.kind));
    };
    let more = list.metadata.remaining_item_count.unwrap_or(0);
    if more > 0
        || list
            .metadata
            .r#continue
            .is_some_and(|more| !more.is_empty())
    {
        return nothing("the list is one page of several: ask for all of them (--chunk-size=0)");
    }
    let kind_of = |item: &Item| item.kind.clone().unwrap_or_else(|| of.to_owned());
    let items: Vec<(String, &Item)> = list
        .items
        .iter()
        .map(|item| (kind_of(item), item))
        .collect();
    let newest = items
        .iter()
        .filter_map(|(_, item)| item.metadata.creation_timestamp)
        .max();
    if let Some(newest) = newest.filter(|newest| newest.duration_since(at).as_secs() > 60) {
        return nothing(format!(
            "the list has something that was made at {newest}, after it was taken ({at}): a clock is wrong"
        ));
    }
    let mut judged = Judged::default();
    for (kind, item) in &items {
        if !is_about(need, kind) || is_over(kind, item) {
            continue;
        }
        let parts = parts(item);
        if parts.images.is_empty() {
            return nothing(format!(
                "{} has no container: the list is cut",
                name(kind, item)
            ));
        }
        if !asked.is_of_application(&parts) {
            continue;
        }
        judged.add(kind, item, &parts, asked);
    }
    // Whoever is owned by something that the list has not: not everything was asked for.
    for (kind, item) in items.iter().filter(|(kind, _)| is_about(need, kind)) {
        let is_there = |owner: &&Owner| {
            items.iter().any(|(kind, one)| {
                *kind == owner.kind
                    && one.metadata.name == owner.name
                    && one.metadata.namespace == item.metadata.namespace
            })
        };
        let owners = item.metadata.owner_references.iter();
        if asked.is_of_application(&parts(item))
            && let Some(owner) = owners
                .filter(|owner| is_about(need, &owner.kind))
                .find(|owner| !is_there(owner))
        {
            return nothing(format!(
                "{} belongs to {} {}, which the list has not: ask for that kind too",
                name(kind, item),
                owner.kind,
                owner.name
            ));
        }
    }
    judged.says(need, asked)
}

#[derive(Default)]
struct Judged {
    new: usize,
    old: BTreeSet<String>,
    idle: BTreeSet<String>,
    leading: usize,
}

impl Judged {
    fn add(&mut self, kind: &str, item: &Item, parts: &Parts<'_>, asked: &Asked) {
        self.leading += usize::from(matches!(kind, "Pod" | "CronJob"));
        if asked.is_new(parts) {
            self.new += 1;
            return;
        }
        let told = format!("{} ({})", name(kind, item), parts.told(asked));
        if is_idle(kind, item) {
            self.idle.insert(told);
        } else {
            self.old.insert(told);
        }
    }

    fn says(self, need: Need, asked: &Asked) -> Result<String, Says> {
        let what = if need == Need::Pods { "Pod" } else { "CronJob" };
        let idle: Vec<&str> = self.idle.iter().map(String::as_str).collect();
        if !self.old.is_empty() {
            return Err(Says::Old(told("older programs run", &self.old)));
        }
        if !idle.is_empty() && !asked.allow_idle {
            return Err(Says::Old(told(
                "older programs can be brought back (scaled to zero, or suspended)",
                &self.idle,
            )));
        }
        if self.leading == 0 {
            return nothing(format!(
                "the list has no {what} of the application, so perhaps it was not asked for, or not seen; where there is none, exclude it in approvers.toml"
            ));
        }
        let idle = if idle.is_empty() {
            String::new()
        } else {
            format!(
                "; {}",
                told("not counted, since nothing of it runs", &self.idle)
            )
        };
        Ok(format!(
            "{} workloads, all of a program that is known{idle}",
            self.new
        ))
    }
}

fn told(what: &str, who: &BTreeSet<String>) -> String {
    let some: Vec<&str> = who.iter().take(10).map(String::as_str).collect();
    let more = who.len().saturating_sub(some.len());
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{what}: {}{more}", some.join(", "))
}

/// Which kinds a need is about.
fn is_about(need: Need, kind: &str) -> bool {
    match need {
        Need::Cronjobs => matches!(kind, "CronJob" | "Job"),
        _ => matches!(
            kind,
            "Pod"
                | "ReplicaSet"
                | "Deployment"
                | "StatefulSet"
                | "DaemonSet"
                | "ReplicationController"
        ),
    }
}

/// What has ended, and starts nothing again.
fn is_over(kind: &str, item: &Item) -> bool {
    match kind {
        "Pod" => matches!(item.status.phase.as_deref(), Some("Succeeded" | "Failed")),
        "Job" => item.status.completion_time.is_some() && item.status.active.is_none(),
        _ => false,
    }
}

/// What runs nothing now, and could again.
fn is_idle(kind: &str, item: &Item) -> bool {
    match kind {
        "ReplicaSet" | "Deployment" | "StatefulSet" | "ReplicationController" => {
            item.spec.replicas == Some(0) && item.status.replicas.unwrap_or(0) == 0
        }
        "CronJob" => item.spec.suspend == Some(true) && item.status.active.is_none(),
        "Job" => item.spec.suspend == Some(true),
        _ => false,
    }
}

fn name(kind: &str, item: &Item) -> String {
    format!("{kind} {}/{}", item.metadata.namespace, item.metadata.name)
}

/// What tells whose a workload is, and how new.
struct Parts<'a> {
    metas: Vec<&'a Meta>,
    /// The image as it is named, with the digest that runs where it is known.
    images: Vec<(&'a str, Option<&'a str>)>,
}

fn parts(item: &Item) -> Parts<'_> {
    let template = item.spec.template.as_ref().or(item
        .spec
        .job_template
        .as_ref()
        .map(|job| &job.spec.template));
    let mut metas = vec![&item.metadata];
    metas.extend(template.map(|template| &template.metadata));
    let spec = template.map_or(&item.spec, |template| &template.spec);
    let containers = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .chain(&spec.ephemeral_containers);
    let images = containers.map(|container| {
        let image = container.image.as_str();
        let status = item.status.container_statuses.iter().find(|status| {
            status.image == image || repository(&status.image_id) == repository(image)
        });
        (image, digest(image).or_else(|| digest(&status?.image_id)))
    });
    Parts {
        metas,
        images: images.collect(),
    }
}

impl Parts<'_> {
    fn has(&self, key: &str, value: &str) -> bool {
        self.metas.iter().any(|meta| {
            let found = meta.labels.get(key).or_else(|| meta.annotations.get(key));
            found.is_some_and(|found| found == value)
        })
    }

    fn told(&self, asked: &Asked) -> String {
        let theirs = asked.of_application(&self.images);
        let images: BTreeSet<&str> = theirs.map(|(image, _)| image).collect();
        images.into_iter().collect::<Vec<_>>().join(" ")
    }
}

impl Asked {
    fn of_application<'a>(
        &'a self,
        images: &'a [(&'a str, Option<&'a str>)],
    ) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let is_theirs = move |image: &str| {
            let of = repository(image);
            self.repositories.is_empty() || self.repositories.iter().any(|one| one == of)
        };
        images
            .iter()
            .copied()
            .filter(move |(image, _)| is_theirs(image))
    }

    fn is_of_application(&self, parts: &Parts<'_>) -> bool {
        let by_label =
            !self.labels.is_empty() && self.labels.iter().all(|(key, value)| parts.has(key, value));
        by_label
            || !self.repositories.is_empty() && self.of_application(&parts.images).next().is_some()
    }

    fn is_new(&self, parts: &Parts<'_>) -> bool {
        let by_label = self
            .known
            .iter()
            .any(|known| matches!(known, Known::Label(key, value) if parts.has(key, value)));
        let mut images = self.of_application(&parts.images).peekable();
        by_label
            || images.peek().is_some()
                && images.all(|(image, digest)| {
                    self.known.iter().any(|known| match known {
                        Known::Digest(known) => digest == Some(known),
                        Known::Image(known) => image == known,
                        Known::Label(..) => false,
                    })
                })
    }
}

/// `registry/name` of an image, without its tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once("://").map_or(image, |(_, rest)| rest);
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

fn digest(image: &str) -> Option<&str> {
    image.split_once('@').map(|(_, digest)| digest)
}
