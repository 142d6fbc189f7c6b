//! Reading back over a line that is cut again: it is tried three times, since it only reads, and no more.

use aegis_model::Held;
use aegis_store::guarded::ReadBack;
use aegis_store::{Config, Store};

use super::cut::{Line, Place, READS_BACK};
use crate::support::Bed;

/// A store over a line, and a claim to ask about.
async fn claim_over_a_line() -> (Bed, Line, Store, Held) {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let line = Line::to(&bed.db.url_as("aegis_engine")).await;
    let config = Config::from_url(line.url()).unwrap().with_pool_size(1);
    let store = Store::connect(config).await.unwrap();
    (bed, line, store, held)
}

#[tokio::test]
async fn a_read_that_is_cut_twice_still_says_what_became_of_the_write() {
    let (_bed, line, store, held) = claim_over_a_line().await;
    line.arm(Place::Before, READS_BACK);
    line.arm(Place::Answered, READS_BACK);
    let read = store.read_back(held, None).await.unwrap();
    assert_eq!((read, line.armed()), (ReadBack::NotApplied, 0));
}

#[tokio::test]
async fn a_read_that_is_cut_for_ever_is_given_up_after_three_tries() {
    let (_bed, line, store, held) = claim_over_a_line().await;
    for _ in 0..4 {
        line.arm(Place::Before, READS_BACK);
    }
    let lost = store.read_back(held, None).await.unwrap_err();
    assert!(lost.lost_answer(), "{lost}");
    assert_eq!(line.armed(), 1, "three tries");
}
