//! A bounded wait for something that can be looked at. It looks at the level, never at an edge,
//! so it cannot miss what happened before it began.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Waits until `holds` says so; panics with `what` when it does not within `bound`.
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut looks = 0;
/// aegis_testkit::wait_until("the third look", Duration::from_secs(5), async || {
///     looks += 1;
///     looks == 3
/// })
/// .await;
/// # });
/// ```
#[track_caller]
pub fn wait_until(
    what: &str,
    bound: Duration,
    mut holds: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut looks = 1;
        while !holds().await {
            assert!(
                start.elapsed() < bound,
                "not within {} ms, in {looks} looks: {what} (waited for at {caller})",
                bound.as_millis()
            );
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            looks += 1;
        }
    }
}
