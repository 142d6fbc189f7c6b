//! `wait_until`: level-triggered, bounded, and clear when it gives up.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aegis_testkit::wait_until;

#[tokio::test]
async fn what_holds_already_is_seen_at_once() {
    let looks = AtomicU32::new(0);
    wait_until("true", Duration::ZERO, async || {
        looks.fetch_add(1, Ordering::Relaxed);
        true
    })
    .await;
    assert_eq!(looks.into_inner(), 1);
}

#[tokio::test]
async fn giving_up_says_what_was_awaited_and_where() {
    let wait = tokio::spawn(async {
        wait_until("pigs fly", Duration::from_millis(20), async || false).await;
    });
    let panic = wait.await.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(
        said.contains("pigs fly") && said.contains("waiting.rs"),
        "{said}"
    );
}
