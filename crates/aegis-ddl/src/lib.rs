//! SQL as statements with a small representation of our own (the parser never shows), and the class of each: where it may run.
