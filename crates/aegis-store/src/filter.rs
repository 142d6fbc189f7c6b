//! Which tasks: a filter over live, parked and ended ones, read in bounded pages.
//!
//! Invariants: a page reads at most [`SCAN_ROWS`] rows of a table, whatever the filter, and goes on by id; a task that is
//! submitted while somebody pages is not met. Age is the moment of submission, which stands in the id.
//!
//! Never: hold anything between pages.

use std::collections::BTreeMap;

use aegis_model::State;
use serde_json::Value;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::task;
use crate::store::Store;

pub use crate::generated::task::ListRow as TaskSummary;

/// How many rows of a table a page may look at.
pub const SCAN_ROWS: i64 = 20_000;

/// The states of a live task that have an index which holds nothing else.
const FEW: [i16; 2] = [State::Running.number(), State::Reconciling.number()];

/// Which tasks; the newest first. What is left empty does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// In one of these states. `states`, `parked` and `discarded` add up; none of them: any state.
    pub states: Vec<State>,
    /// Failed or quarantined, and waiting for somebody to redrive or discard them.
    pub parked: bool,
    /// Failed or quarantined, and given up for good.
    pub discarded: bool,
    /// Of this queue.
    pub queue: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// With each of these labels.
    pub labels: BTreeMap<String, String>,
    /// Submitted so many milliseconds ago, or earlier.
    pub older_than_ms: Option<i64>,
    /// Submitted within so many milliseconds.
    pub newer_than_ms: Option<i64>,
    /// Older than this one: the next page.
    pub before: Option<Uuid>,
    /// At most so many; 0: no limit.
    pub limit: i64,
}

/// The states that are looked for in each of the places where a task can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) live: Vec<i16>,
    pub(crate) parked: Vec<i16>,
    pub(crate) ended: Vec<i16>,
}

impl TaskFilter {
    /// Does it leave out nothing?
    pub fn is_everything(&self) -> bool {
        let Self {
            states,
            parked,
            discarded,
            queue,
            kind,
            tenant,
            labels,
            older_than_ms,
            newer_than_ms,
            before,
            limit: _,
        } = self;
        states.is_empty()
            && !parked
            && !discarded
            && queue.is_none()
            && kind.is_none()
            && tenant.is_none()
            && labels.is_empty()
            && older_than_ms.is_none()
            && newer_than_ms.is_none()
            && before.is_none()
    }

    pub(crate) fn wanted(&self) -> Wanted {
        let any = self.states.is_empty() && !self.parked && !self.discarded;
        let of = |place: fn(State) -> bool, extra: bool| {
            aegis_model::state::STATES
                .into_iter()
                .filter(|state| place(*state))
                .filter(|state| any || self.states.contains(state) || (extra && state.is_parked()))
                .map(State::number)
                .collect()
        };
        Wanted {
            live: of(|state| !state.is_terminal(), false),
            parked: of(State::is_parked, self.parked),
            ended: of(State::is_terminal, self.discarded),
        }
    }
}

/// A walk over the tasks of a filter, page by page.
#[derive(Debug, Clone)]
pub struct Walk {
    filter: TaskFilter,
    wanted: Wanted,
    labels: Option<Value>,
    /// Ids from `floor` up to `before`, without it, are left.
    before: Uuid,
    floor: Uuid,
    done: bool,
}

impl Walk {
    /// What the filter wants where.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Looks in other places than the filter says.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Have all been met?
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next tasks, at most `limit`; perhaps none although there are more: ask [`Walk::is_done`].
    ///
    /// # Errors
    /// A database error. The walk may go on where it stood.
    pub async fn page(
        &mut self,
        store: &Store,
        limit: i64,
    ) -> Result<Vec<TaskSummary>, StoreError> {
        if self.done {
            return Ok(Vec::new());
        }
        let of_few = self.wanted.live.iter().all(|state| FEW.contains(state));
        let conn = store.conn().await?;
        let conn = conn.conn();
        let frontier = task::frontier(
            &conn,
            !of_few,
            self.before,
            self.floor,
            SCAN_ROWS,
            !self.wanted.parked.is_empty(),
            !self.wanted.ended.is_empty(),
        )
        .await?;
        let floor = frontier.as_ref().map_or(self.floor, |row| row.id);
        let rows = task::list(
            &conn,
            &task::ListParams {
                queue: self.filter.queue.as_deref(),
                kind: self.filter.kind.as_deref(),
                tenant: self.filter.tenant.as_deref(),
                walk: !of_few,
                before: self.before,
                floor,
                live: &self.wanted.live,
                parked: &self.wanted.parked,
                ended: &self.wanted.ended,
                labels: self.labels.as_ref(),
                limit,
            },
        )
        .await?;
        if i64::try_from(rows.len()).is_ok_and(|count| count >= limit)
            && let Some(last) = rows.last()
        {
            self.before = last.id;
        } else {
            self.before = floor;
            self.done = frontier.is_none();
        }
        Ok(rows)
    }
}

impl Store {
    /// Begins a walk. What is submitted from now on is not met.
    ///
    /// # Errors
    /// [`StoreError::BadFilter`]; a database error.
    pub async fn walk(&self, filter: &TaskFilter) -> Result<Walk, StoreError> {
        check(filter)?;
        let (low, high) = self
            .bounded({
                let (older, newer) = (filter.older_than_ms, filter.newer_than_ms);
                async move |store| {
                    let conn = store.conn().await?;
                    let high = task::moment(&conn.conn(), older.map_or(1, |ms| -ms))
                        .await?
                        .floor;
                    let low = match newer {
                        Some(ms) => task::moment(&conn.conn(), -ms).await?.floor,
                        None => Uuid::nil(),
                    };
                    Ok((low, high))
                }
            })
            .await?;
        Ok(Walk {
            wanted: filter.wanted(),
            labels: (!filter.labels.is_empty()).then(|| serde_json::json!(filter.labels)),
            before: filter.before.map_or(high, |before| before.min(high)),
            floor: low,
            done: false,
            filter: filter.clone(),
        })
    }

    /// Tasks by filter, the newest first, up to its limit.
    ///
    /// # Errors
    /// As [`Store::walk`].
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskSummary>, StoreError> {
        let limit = if filter.limit == 0 {
            i64::MAX
        } else {
            filter.limit
        };
        let mut walk = self.walk(filter).await?;
        let mut found = Vec::new();
        while !walk.is_done() {
            let left = limit - i64::try_from(found.len()).unwrap_or(i64::MAX);
            if left <= 0 {
                break;
            }
            found.extend(walk.page(self, left).await?);
        }
        Ok(found)
    }
}

/// What no stored name, label or time can be.
fn check(filter: &TaskFilter) -> Result<(), StoreError> {
    let texts = [&filter.queue, &filter.kind, &filter.tenant];
    let labels = filter.labels.iter().flat_map(|(name, value)| [name, value]);
    if texts
        .into_iter()
        .flatten()
        .chain(labels)
        .any(|text| text.contains('\0'))
    {
        return Err(StoreError::BadFilter {
            problem: "a name or label has the character NUL, which none that is stored has"
                .to_owned(),
        });
    }
    for (name, age) in [
        ("older_than_ms", filter.older_than_ms),
        ("newer_than_ms", filter.newer_than_ms),
    ] {
        if let Some(ms) = age
            && !(0..=aegis_model::limits::DURATION_MS_MAX).contains(&ms)
        {
            return Err(StoreError::BadFilter {
                problem: format!(
                    "{name} is {ms}; use 0 to {}",
                    aegis_model::limits::DURATION_MS_MAX
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(change: impl FnOnce(&mut TaskFilter)) -> Wanted {
        let mut filter = TaskFilter::default();
        change(&mut filter);
        filter.wanted()
    }

    #[test]
    fn parked_and_discarded_are_told_apart_and_states_add_up() {
        let any = wanted(|_| {});
        assert_eq!(any.live, [0, 1, 2, 3, 4]);
        assert_eq!((any.parked, any.ended), (vec![6, 8], vec![5, 6, 7, 8]));
        let failed = wanted(|filter| filter.states = vec![State::Failed]);
        assert_eq!(failed.live, [0_i16; 0]);
        assert_eq!((failed.parked, failed.ended), (vec![6], vec![6]));
        let parked = wanted(|filter| filter.parked = true);
        assert_eq!((parked.parked, parked.ended), (vec![6, 8], vec![]));
        let discarded = wanted(|filter| {
            filter.discarded = true;
            filter.states = vec![State::Ready];
        });
        assert_eq!(discarded.live, [1]);
        assert_eq!((discarded.parked, discarded.ended), (vec![], vec![6, 8]));
    }
}
