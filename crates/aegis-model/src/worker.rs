//! The states of a worker's row in the database: the gate.

/// Where an incarnation stands. The number is what the database stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerState {
    /// 0: may acquire.
    Accepting,
    /// 1: finishes what it has; no acquisition commits any more.
    Draining,
    /// 2: ended holding nothing.
    Stopped,
    /// 3: its lease ran out; for ever.
    Lost,
}

impl WorkerState {
    /// The state of a stored number; one of a newer schema counts as lost, which is safe.
    pub const fn from_number(number: i16) -> Self {
        match number {
            0 => Self::Accepting,
            1 => Self::Draining,
            2 => Self::Stopped,
            _ => Self::Lost,
        }
    }

    /// The word used in the API, the CLI and the docs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepting => "accepting",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_a_newer_schema_counts_as_lost() {
        assert_eq!(
            [0, 1, 2, 3, 4].map(|number| WorkerState::from_number(number).word()),
            ["accepting", "draining", "stopped", "lost", "lost"]
        );
    }
}
