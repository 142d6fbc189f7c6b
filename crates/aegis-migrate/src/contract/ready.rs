//! What `close`, `observe` and `run` will need, looked at before the door shuts: a door that shuts in vain stops old programs for nothing.
//!
//! Invariants: it reads only; what can still be brought while the door is shut (looks, bundles, people's word, signatures) is not asked
//! for, but that somebody may bring it is; what could not be read is in the way, as unknown, with the error beside it.

use tokio_postgres::GenericClient;

use super::dependents;
use super::door;
use super::fact::Standing;
use super::judge::may_be_attested;
use super::keyring::{Keyring, May};
use super::look;
use super::need::Need;
use super::reconciled::{self, Question};
use super::subject::Subject;
use crate::change::Change;
use crate::run::lost::{is_lost, whole_of};
use crate::switch::{self, Side};

/// Something that is in the way of closing.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Lack {
    /// What is asked: a fact's name, `approvers`, `switch` or `revoke_from`.
    pub what: String,
    /// Why it does not do; [`UNKNOWN`] where that could not be read.
    pub why: String,
    /// What to do.
    pub way_out: String,
    /// The words of the error, where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How something stands that could not be read.
pub const UNKNOWN: &str = "unknown";

impl Lack {
    /// One.
    pub fn new(
        what: impl Into<String>,
        why: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            way_out: way_out.into(),
            error: None,
        }
    }

    /// One that nobody knows, since it could not be read.
    pub fn unknown(
        what: impl Into<String>,
        error: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::new(what, UNKNOWN, way_out)
        }
    }

    /// Why, for a sentence: the error where there is one.
    pub fn said(&self) -> &str {
        self.error.as_deref().unwrap_or(&self.why)
    }
}

/// Everything that is in the way of this door; empty when it may shut. `keyring` is why there is none when it cannot be read.
///
/// # Errors
/// The database's.
pub async fn lacks(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    keyring: Result<&Keyring, &str>,
) -> Result<Vec<Lack>, tokio_postgres::Error> {
    let looked = each(client, subject, keyring).await;
    let found = looked.into_iter().map(|(_, lack)| lack);
    Ok(found
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// As [`lacks`], for people who look: what the database does not let read is [`UNKNOWN`], and the rest is told all the same.
///
/// # Errors
/// A lost connection.
pub async fn told(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    keyring: Result<&Keyring, &str>,
) -> Result<Vec<Lack>, tokio_postgres::Error> {
    let mut lacks = Vec::new();
    for (what, lack) in each(client, subject, keyring).await {
        match lack {
            Ok(lack) => lacks.extend(lack),
            Err(error) if is_lost(&error) => return Err(error),
            Err(error) => lacks.push(Lack::unknown(what, whole_of(&error), UNREAD)),
        }
    }
    Ok(lacks)
}

/// What to do where the database does not let something be read.
pub const UNREAD: &str = "mend what the error says, or ask as a role that may read it";

/// Each thing that is asked, with what is lacking of it.
async fn each(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    keyring: Result<&Keyring, &str>,
) -> Vec<(&'static str, Result<Option<Lack>, tokio_postgres::Error>)> {
    let mut found = Vec::new();
    if let Err(why) = keyring {
        let lack = Lack::unknown("approvers", why, NO_KEYRING);
        found.push(("approvers", Ok(Some(lack))));
    }
    found.push(("revoke_from", no_such_role(client, subject).await));
    let switch = told_the_old_side(client, subject.change).await;
    found.push(("switch", switch));
    for need in &subject.asked() {
        if keyring.is_ok_and(|keyring| keyring.exclusion(*need).is_some()) {
            continue;
        }
        let never = never_shown(client, subject, keyring.ok(), *need).await;
        let lack = never.map(|found| found.map(|(why, out)| Lack::new(need.name(), why, out)));
        found.push((need.name(), lack));
    }
    found
}

async fn no_such_role(
    client: &impl GenericClient,
    subject: &Subject<'_>,
) -> Result<Option<Lack>, tokio_postgres::Error> {
    let lacking = door::lacking_roles(client, &subject.contract.revoke_from).await?;
    if lacking.is_empty() {
        return Ok(None);
    }
    let why = format!("roles that do not exist here: {}", lacking.join(", "));
    let way_out = "correct [contract] revoke_from, or make the roles first";
    Ok(Some(Lack::new("revoke_from", why, way_out)))
}

/// What to do without a file of approvers.
pub const NO_KEYRING: &str = "write approvers.toml into the folder of the changes, or name it by --approvers; docs/guides/contract.md shows one";

/// Why applications may still use the old side of a change that has a switch; none when they are told the new one.
pub async fn told_the_old_side(
    client: &impl GenericClient,
    change: &Change,
) -> Result<Option<Lack>, tokio_postgres::Error> {
    if change.switch.is_none() {
        return Ok(None);
    }
    let id = change.id.to_string();
    let way_out = format!(
        "the door shuts when both are new: `aegis migrate switch {id} --reads new --writes new --reason TEXT`"
    );
    if !reconciled::is_there(client, "aegis_migrate.switch").await? {
        return Ok(Some(Lack::new("switch", "it was never moved", way_out)));
    }
    let stands = match switch::standing(client, &id).await {
        Ok(stands) => stands,
        Err(switch::SwitchError::Database(error)) => return Err(error),
        Err(other) => return Ok(Some(Lack::unknown("switch", other.to_string(), way_out))),
    };
    let counts = stands.last.as_ref().is_some_and(|last| last.counts);
    if (stands.reads, stands.writes) == (Side::New, Side::New) && counts {
        return Ok(None);
    }
    if let (Side::New, Side::New, Some(last)) = (stands.reads, stands.writes, &stands.last) {
        let why = format!(
            "both are new, but that counts from {} on (cache_ttl_ms): until then an application may still go by the move before",
            last.counts_from
        );
        let way_out = format!("wait {} s, then close again", last.counts_in_s);
        return Ok(Some(Lack::new("switch", why, way_out)));
    }
    let when = stands
        .last
        .filter(|last| !last.counts)
        .map_or_else(String::new, |last| {
            format!(", and the last move counts from {} on", last.counts_from)
        });
    let why = format!(
        "applications are told to read the {} side of {id} and to write the {} side{when}",
        stands.reads, stands.writes
    );
    Ok(Some(Lack::new("switch", why, way_out)))
}

/// Why a need could not be shown while the door is shut, with the way out; none when it could.
async fn never_shown(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    keyring: Option<&Keyring>,
    need: Need,
) -> Result<Option<(String, String)>, tokio_postgres::Error> {
    let out_of = |why: &str, way_out: &str| Some((why.to_owned(), way_out.to_owned()));
    // Whether somebody may bring it, as far as that is known.
    let may = |what: May| keyring.is_none_or(|keyring| keyring.anybody_may(what));
    let answers = may_be_attested(need) && may(May::Attest);
    Ok(match need {
        Need::Reconciled => counted(client, subject).await?,
        Need::Sightings if subject.rule.is_none() => out_of(
            "only a sync trigger notes writes of the old side, and the change has no [sync]",
            "take sightings out of [contract] evidence",
        ),
        Need::Clients if subject.contract.revoke_from.is_empty() => out_of(
            "[contract] revoke_from names no role whose sessions could be looked at",
            "name the roles of the applications, or take clients out of [contract] evidence",
        ),
        Need::Dependents => {
            let seen = dependents::look(client, subject).await?;
            (seen.holds != Some(true)).then(|| (seen.detail, need.way_out().to_owned()))
        }
        Need::Workers | Need::Tasks if !answers && !look::has_engine(client).await? => out_of(
            "no engine is in this database, and nobody in approvers.toml may attest",
            "let somebody attest (may), or exclude it with a reason",
        ),
        Need::Pods | Need::Cronjobs if !answers && !may(May::Observe) => out_of(
            "it is seen by a collector only, and nobody in approvers.toml may observe or attest",
            "give the collector a key and `may = [\"observe\"]`, or exclude it with a reason",
        ),
        Need::RollbackWindow if !answers => out_of(
            "a person answers for it, and nobody in approvers.toml may attest",
            "let somebody attest (may), or exclude it with a reason",
        ),
        _ => None,
    })
}

/// Why the rows are not known to be moved. The pass that the contract itself needs is made when new writes count, also later; one that
/// says that rows are wrong, or whose trigger is gone, would only say so again.
async fn counted(
    client: &impl GenericClient,
    subject: &Subject<'_>,
) -> Result<Option<(String, String)>, tokio_postgres::Error> {
    let id = &subject.id;
    let way_out = format!("`aegis migrate reconcile {id}` until it counts zero, then close");
    let mut last = None;
    for question in [Question::Agrees, Question::Forward] {
        let fact = reconciled::fact(client, subject.change, question).await?;
        match &fact.standing {
            Standing::Missing => last = Some(fact),
            Standing::Shown | Standing::Attested { .. } | Standing::Excluded { .. } => {
                return Ok(None);
            }
            // It is only too early: from before new writes counted.
            Standing::Inconclusive
                if reconciled::trigger_is_same(client, subject.change, question).await? =>
            {
                return Ok(None);
            }
            Standing::Inconclusive | Standing::Refuted => {
                return Ok(Some((fact.detail, way_out)));
            }
        }
    }
    Ok(last.map(|fact| (fact.detail, way_out)))
}
