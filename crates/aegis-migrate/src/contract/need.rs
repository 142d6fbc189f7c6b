//! What a contract may demand to be shown before it drops anything. The names are those of `[contract] evidence`.

use serde::{Deserialize, Serialize};

/// One thing that must be so before an old form may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A full pass found no row in which neither direction holds, later than the switch to new writes.
    Reconciled,
    /// Nobody wrote the old side while it was watched.
    Sightings,
    /// No Pod or ReplicaSet of an older release is left. Lives in Kubernetes.
    Pods,
    /// No worker that is older than the new floor is registered.
    Workers,
    /// No execution that began before the door was shut still runs.
    Tasks,
    /// No CronJob starts an older release. Lives in Kubernetes.
    Cronjobs,
    /// No session of a runtime role is older than the shut door.
    Clients,
    /// Nothing in the catalog depends on what is to be dropped.
    Dependents,
    /// Somebody said that the release before will not come back.
    RollbackWindow,
}

impl Need {
    /// All, in the order of the reports.
    pub const ALL: [Self; 9] = [
        Self::Reconciled,
        Self::Sightings,
        Self::Pods,
        Self::Workers,
        Self::Tasks,
        Self::Cronjobs,
        Self::Clients,
        Self::Dependents,
        Self::RollbackWindow,
    ];

    /// As it stands in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reconciled => "reconciled",
            Self::Sightings => "sightings",
            Self::Pods => "pods",
            Self::Workers => "workers",
            Self::Tasks => "tasks",
            Self::Cronjobs => "cronjobs",
            Self::Clients => "clients",
            Self::Dependents => "dependents",
            Self::RollbackWindow => "rollback_window",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|need| need.name() == name)
    }

    /// Whether it must hold during the whole observation, or only when the contract runs.
    pub const fn is_watched(self) -> bool {
        matches!(
            self,
            Self::Sightings
                | Self::Pods
                | Self::Workers
                | Self::Tasks
                | Self::Cronjobs
                | Self::Clients
        )
    }

    /// Whether this tool can see it by itself. What it cannot see comes in as a signed bundle or a person's attestation.
    pub const fn is_seen_here(self) -> bool {
        !matches!(self, Self::Pods | Self::Cronjobs | Self::RollbackWindow)
    }

    /// What to do when it was not seen for long enough, not now, or not at all: there is nobody to move, only to look.
    pub const fn look_on(self) -> &'static str {
        match self {
            Self::Sightings | Self::Clients => {
                "observe longer, until the time is full: `aegis migrate contract observe ID`"
            }
            Self::Workers | Self::Tasks => {
                "observe longer, until the time is full: `aegis migrate contract observe ID`; where the engine has a database of its own, attest it or exclude it in approvers.toml"
            }
            _ => self.way_out(),
        }
    }

    /// What to do when it was seen not to hold.
    pub const fn way_out(self) -> &'static str {
        match self {
            Self::Reconciled => "reconcile after the switch to new writes, until it counts zero",
            Self::Sightings => "find who still writes the old side, move it, and observe again",
            Self::Pods | Self::Cronjobs => {
                "hand in a signed bundle of the cluster: `contract observe ID --bundle FILE`"
            }
            Self::Workers => "drain the workers of the older release, then observe again",
            Self::Tasks => {
                "wait until what began before the door was shut has ended, then observe again"
            }
            Self::Clients => {
                "end the old sessions of the runtime roles (restart their programs), then observe again"
            }
            Self::Dependents => {
                "drop or change what depends on it, in a change of its own or in this contract's SQL"
            }
            Self::RollbackWindow => {
                "`aegis migrate contract attest ID rollback_window --key FILE --until TIME --reason TEXT`"
            }
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn names_are_those_of_the_file() {
        for need in Need::ALL {
            assert_eq!(serde_json::to_value(need).unwrap(), need.name());
            assert_eq!(Need::from_name(need.name()), Some(need));
        }
        assert_eq!(Need::from_name("reconcile"), None);
    }
}
