//! What search_path names first: SET LOCAL ends with its transaction, and what set_config sets is not read.

use super::World;

/// The first schema of search_path.
#[derive(Debug, Clone)]
pub(super) struct SearchPath {
    first: String,
    /// What it was before SET LOCAL.
    before_local: Option<String>,
    /// Whether something set it that nobody read.
    unread: bool,
}

impl SearchPath {
    pub(super) fn new(first: &str) -> Self {
        Self {
            first: first.to_owned(),
            before_local: None,
            unread: false,
        }
    }

    pub(super) fn first(&self) -> &str {
        &self.first
    }
}

impl World<'_> {
    /// SET search_path, or SET LOCAL.
    pub(in crate::judge) fn searches(&mut self, schema: &str, local: bool) {
        let path = &mut self.path;
        if local {
            path.before_local.get_or_insert_with(|| path.first.clone());
        } else {
            path.before_local = None;
        }
        path.unread = schema == "$user";
        if !path.unread {
            schema.clone_into(&mut path.first);
        }
    }

    /// A function set it.
    pub(in crate::judge) fn searches_unread(&mut self) {
        self.path.unread = true;
    }

    /// Whether names without a schema are of the one that is taken for theirs.
    pub(in crate::judge) const fn knows_its_path(&self) -> bool {
        !self.path.unread
    }

    /// A transaction ends, and SET LOCAL with it.
    pub(in crate::judge) fn ends_transaction(&mut self) {
        if let Some(before) = self.path.before_local.take() {
            self.path.first = before;
        }
    }
}
