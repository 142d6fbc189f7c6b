//! A task whose input is a value of the submitter's own.

use serde::Serialize;

use crate::submit::NewTask;

impl NewTask {
    /// A task of a kind with an input that is encoded as JSON, everything else at its default.
    ///
    /// ```
    /// use aegis_store::NewTask;
    ///
    /// let task = NewTask {
    ///     key: Some("order-7".to_owned()),
    ///     ..NewTask::json("charge", &7)?
    /// };
    /// assert_eq!(task.input, b"7");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// What cannot be JSON, such as a map with keys that are no text.
    pub fn json(
        kind: impl Into<String>,
        input: &(impl Serialize + ?Sized),
    ) -> Result<Self, serde_json::Error> {
        Ok(Self::new(kind, serde_json::to_vec(input)?))
    }
}
