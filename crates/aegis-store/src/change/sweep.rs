//! A change of all that a filter finds, page by page.
//!
//! Invariant: a page that failed may be tried again; the walk stands where it stood before it.

use uuid::Uuid;

use super::{By, Change, Changed, PAGE_TASKS};
use crate::error::StoreError;
use crate::filter::Walk;
use crate::store::Store;

/// A change of all that a filter finds: its pages, one after another.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub(super) walk: Walk,
    pub(super) change: Change,
    pub(super) by: By,
    pub(super) dry: bool,
    /// How many more may be met.
    pub(super) left: i64,
}

impl Sweep {
    /// The next page; `None`: all were met. Everything before it is committed, and what was changed does not match again:
    /// a sweep that was broken off is begun anew.
    ///
    /// # Errors
    /// As [`Store::change`]; the page may be tried again.
    pub async fn page(&mut self, store: &Store) -> Result<Option<Vec<Changed>>, StoreError> {
        while !self.walk.is_done() && self.left > 0 {
            let mut ahead = self.walk.clone();
            let page = i64::try_from(PAGE_TASKS).unwrap_or(i64::MAX);
            let found = ahead.page(store, page.min(self.left)).await?;
            let ids: Vec<Uuid> = found.iter().map(|task| task.id).collect();
            let changed = if ids.is_empty() {
                Vec::new()
            } else {
                let wanted = Some(self.walk.wanted().clone());
                store
                    .change_page(ids, self.change, &self.by, self.dry, wanted)
                    .await?
            };
            self.walk = ahead;
            self.left -= i64::try_from(found.len()).unwrap_or(self.left);
            if !changed.is_empty() {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }
}
