//! What can happen next. `execution`, `process` and `task` are positions.

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// True time and the database's clock move on.
    Tick,
    /// The database's clock jumps forward.
    JumpForward,
    /// The database's clock jumps back.
    JumpBack,
    /// The standby catches up.
    Replicate,
    /// The primary dies; the standby is promoted as it is.
    Failover,
    /// A slot takes a permit of its gate and sends an acquire call for this task, which runs at once where nobody drains.
    Acquire {
        /// Who.
        execution: usize,
        /// What it will find.
        task: usize,
        /// The statement runs at once, and its reply is lost.
        lost: bool,
    },
    /// The acquire statement runs.
    Claim {
        /// Whose.
        execution: usize,
        /// Its reply is lost.
        lost: bool,
    },
    /// A lost acquire call is repeated with its request id.
    AskAgain {
        /// Who.
        execution: usize,
    },
    /// An execution looks at the ledger and decides what to do next.
    Decide {
        /// Who.
        execution: usize,
    },
    /// Its handler completes although an operation is open.
    Skip {
        /// Who.
        execution: usize,
    },
    /// Its guarded write runs.
    Write {
        /// Whose.
        execution: usize,
        /// Its reply is lost.
        lost: bool,
    },
    /// A lost reply is resolved by reading back.
    ReadBack {
        /// Who.
        execution: usize,
    },
    /// The call leaves.
    Call {
        /// Who.
        execution: usize,
    },
    /// A request arrives.
    Deliver {
        /// For which task.
        task: usize,
        /// Which of those under way.
        request: usize,
        /// The answer is lost.
        lost: bool,
    },
    /// The downstream forgets its oldest key.
    Forget {
        /// Of which task.
        task: usize,
    },
    /// An execution gives up waiting for an answer.
    TimeOut {
        /// Who.
        execution: usize,
    },
    /// A process renews its lease.
    Renew {
        /// Who.
        process: usize,
    },
    /// An execution stops because its process no longer believes in its lease.
    StandDown {
        /// Who.
        execution: usize,
    },
    /// A process whose lease is lost, or that was started again, registers a new incarnation.
    Register {
        /// Who.
        process: usize,
    },
    /// A process dies without a word.
    Crash {
        /// Who.
        process: usize,
    },
    /// A process is asked to drain: its gate closes, in memory and in the database.
    Drain {
        /// Who.
        process: usize,
    },
    /// An execution of a draining process stops and hands its task back.
    HandBack {
        /// Who.
        execution: usize,
    },
    /// A draining process that holds nothing says so.
    Finish {
        /// Who.
        process: usize,
    },
    /// The reaper returns a task.
    Reap {
        /// Which.
        task: usize,
    },
    /// An unguarded reaper reads.
    ReapRead {
        /// Which.
        task: usize,
    },
    /// An unguarded reaper writes what it has read.
    ReapWrite {
        /// Which.
        task: usize,
    },
    /// A running row that its live owner does not name goes back.
    ReturnAbsent {
        /// Which.
        task: usize,
    },
    /// A person looks at the downstream and resolves an unknown operation.
    Resolve {
        /// Whose.
        task: usize,
    },
}
