//! Runs something on many targets, so many at once, until the stop rule holds.

use std::future::Future;

use tokio::task::JoinSet;

use super::{Stop, Target};

/// How it went on one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Each<T, E> {
    /// It was done.
    Done(T),
    /// It failed.
    Failed(E),
    /// It was not begun, since the stop rule held.
    NotTried,
}

/// Runs `work` on each target; the answers are in the order of the targets. `told` hears each one as it ends.
///
/// # Errors
///
/// The error of a `work` that panicked, told like a failure by `lost`.
pub async fn each<T, E, F, W>(
    targets: &[Target],
    parallel: usize,
    stop: Stop,
    mut work: W,
    lost: impl Fn(String) -> E,
    mut told: impl FnMut(&Target, &Each<T, E>),
) -> Vec<Each<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
    W: FnMut(Target) -> F,
{
    let mut results: Vec<Each<T, E>> = targets.iter().map(|_| Each::NotTried).collect();
    let mut running = JoinSet::new();
    let mut numbers = std::collections::HashMap::new();
    let mut next = 0;
    let mut failures = 0;
    loop {
        while next < targets.len() && running.len() < parallel.max(1) && !stop.after(failures) {
            let handle = running.spawn(work(targets[next].clone()));
            numbers.insert(handle.id(), next);
            next += 1;
        }
        let Some(ended) = running.join_next_with_id().await else {
            return results;
        };
        let (id, result) = match ended {
            Ok((id, Ok(done))) => (id, Each::Done(done)),
            Ok((id, Err(error))) => (id, Each::Failed(error)),
            Err(error) => (error.id(), Each::Failed(lost(error.to_string()))),
        };
        if matches!(result, Each::Failed(_)) {
            failures += 1;
        }
        if let Some(number) = numbers.remove(&id) {
            told(&targets[number], &result);
            results[number] = result;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn targets(count: usize) -> Vec<Target> {
        (0..count)
            .map(|number| Target {
                name: number.to_string(),
                url: String::new(),
                schema: None,
            })
            .collect()
    }

    async fn run(stop: Stop, bad: &'static [&'static str]) -> (Vec<Each<(), String>>, usize) {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let results = each(
            &targets(6),
            2,
            stop,
            move |target| {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                async move {
                    let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(at_once, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    if bad.contains(&target.name.as_str()) {
                        Err(format!("{} failed", target.name))
                    } else {
                        Ok(())
                    }
                }
            },
            |lost| lost,
            |_, _| {},
        )
        .await;
        (results, seen.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn never_stops_tries_all_and_no_more_at_once_than_said() {
        let (results, most) = run(Stop::Never, &["1", "3"]).await;
        let failed = results
            .iter()
            .filter(|one| matches!(one, Each::Failed(_)))
            .count();
        let done = results
            .iter()
            .filter(|one| matches!(one, Each::Done(())))
            .count();
        assert_eq!((failed, done, most), (2, 4, 2));
        assert_eq!(results[3], Each::Failed("3 failed".to_owned()));
    }

    #[tokio::test]
    async fn what_was_not_begun_is_told_as_not_tried() {
        let (results, _) = run(Stop::First, &["0"]).await;
        assert_eq!(results[0], Each::Failed("0 failed".to_owned()));
        assert!(results[2..].contains(&Each::NotTried), "{results:?}");
        assert_eq!(results[5], Each::NotTried);
        let (results, _) = run(Stop::Failures(2), &["0", "1"]).await;
        assert_eq!(results[5], Each::NotTried);
    }
}
