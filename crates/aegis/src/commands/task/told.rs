//! What became of a task that somebody changed, in words for people.

use aegis_store::change::{Answer, Change, Skip};

/// What happened, or would.
pub(super) fn answer(answer: &Answer, change: Change) -> String {
    match answer {
        Answer::Cancelled => "cancelled; it had not started".to_owned(),
        Answer::Requested => "asked to stop; it is ended for it when it does not".to_owned(),
        Answer::Pending => "an operation is open; it is cancelled when that is settled".to_owned(),
        Answer::Ready => "ready now".to_owned(),
        Answer::Scheduled => "waits for its new time".to_owned(),
        Answer::Reprioritised => "has its new priority".to_owned(),
        Answer::Redriven => "sent again".to_owned(),
        Answer::Discarded => "given up for good".to_owned(),
        Answer::Erased => "its payload is gone".to_owned(),
        Answer::Skipped(skip) => format!("left alone: {}", self::skip(skip, change)),
    }
}

/// Why not, and what to do instead.
pub(super) fn skip(skip: &Skip, change: Change) -> String {
    match skip {
        Skip::Missing => "there is no such task".to_owned(),
        Skip::MovedOn => "it is not in that state any more".to_owned(),
        Skip::Busy => "somebody holds its row; try again".to_owned(),
        Skip::Ended => match change {
            Change::Redrive | Change::Discard => {
                "it is neither failed nor quarantined, or was discarded".to_owned()
            }
            _ => "it has ended already".to_owned(),
        },
        Skip::Parked => match change {
            Change::Erase => "it is parked and may be sent again; discard it first".to_owned(),
            Change::Cancel => "it has ended already and is parked; discard it".to_owned(),
            _ => "it is parked; redrive it".to_owned(),
        },
        Skip::Live => match change {
            Change::Erase => "it has not ended; cancel it and wait for its end first".to_owned(),
            _ => "it is neither failed nor quarantined".to_owned(),
        },
        Skip::NotWaiting => "it does not wait for a time".to_owned(),
        Skip::ReadyAlready => "it is ready already".to_owned(),
        Skip::NotFailed => {
            "it does not wait after a failed attempt; run-now starts what waits for another reason"
                .to_owned()
        }
        Skip::PastDeadline => "it would start after its deadline".to_owned(),
        Skip::Same => "it has that already".to_owned(),
        Skip::ErasedAlready => "its payload is gone already".to_owned(),
        Skip::Refused(why) => format!("the database refused: {why}"),
    }
}

/// `cancelled`, of many.
pub(super) fn done(change: Change) -> &'static str {
    match change {
        Change::Cancel => "cancelled, or asked to stop",
        Change::Retry | Change::RunNow => "made ready",
        Change::Reschedule { .. } => "given another time",
        Change::Reprioritise { .. } => "given another priority",
        Change::Redrive => "sent again",
        Change::Discard => "given up for good",
        Change::Erase => "erased",
    }
}
