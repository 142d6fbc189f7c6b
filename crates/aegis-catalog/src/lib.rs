//! What a database holds, as values: read in one snapshot, compared as structures, never as text that a setting changes.
