//! Rules that can be taken away, one at a time. Each must lead to a counterexample; a test names which.

/// A rule that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// The guard compares the epoch alone.
    FenceIsEpoch,
    /// The guard compares owner and epoch: no claim id, no rev, no lineage.
    FenceIsOwnerAndEpoch,
    /// The guard compares the owner alone.
    FenceIsOwner,
    /// A write finds its row among those of its owner, not by the task's id.
    RowsByOwner,
    /// The guard does not look at the lease.
    NoLease,
    /// The lease is judged by the clock of the moment the statement was sent.
    TransactionClock,
    /// The lease is read in the statement's own snapshot, before its lock wait.
    SnapshotLease,
    /// The reaper reads first and writes later, by id alone.
    UnguardedReaper,
    /// The reaper leaves rows of another lineage alone while their worker lives.
    ReaperTrustsOldLineage,
    /// Acquisition does not read the worker's row.
    GateInMemoryOnly,
    /// A worker that no longer accepts says "drained" while a claim is under way.
    DrainForgetsClaims,
    /// Any worker may claim any protocol.
    ClaimIgnoresProtocol,
    /// The call leaves before its dispatch was applied.
    NoIntent,
    /// The epoch is part of the key that the downstream sees.
    KeyHasEpoch,
    /// The quiet period counts from the end of the claim, whoever ended it.
    QuietFromTheEnd,
    /// A worker does not obey the answer to its renewal.
    RenewalIsDeaf,
    /// A blind operation is repeated like an idempotent one.
    BlindIsRepeated,
    /// A queryable one is probed at once.
    NoQuietPeriod,
    /// The key is trusted as long as the downstream keeps it, without a margin.
    NoKeyMargin,
    /// A call may leave at any moment after its dispatch, whatever has become of its key meanwhile.
    CallWaitsForEver,
    /// A lost reply of a guarded write counts as applied.
    UnknownIsApplied,
    /// A task is completed beside an open operation.
    CompleteBesideOpen,
    /// A person resolves before a late request can no longer arrive.
    ResolvedEarly,
    /// Nobody returns what a lost worker held.
    NobodyReaps,
    /// A task with an unknown operation goes back to the ready ones, and not before a person.
    DoubtGoesRound,
    /// A loss by crash is not counted.
    CrashesUncounted,
    /// Acquisition leaves the epoch as it is.
    ClaimKeepsEpoch,
    /// A promoted standby says the lineage of before.
    PromotionKeepsLineage,
    /// The end of a claim sets its open operation back to intended.
    EndForgetsDispatch,
    /// A downstream that is called fenced serves every request.
    FenceIsNoFence,
}
