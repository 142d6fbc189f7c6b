//! Handlers that are programs.
