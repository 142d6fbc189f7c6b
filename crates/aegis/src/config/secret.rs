//! What must not be read over a shoulder, in a log or in a bug report.
//!
//! Invariants: a URL is shown without its password, wherever it stands in it; a value whose name says that it is secret is
//! not shown at all.

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Whether a setting of this name is shown masked.
pub(crate) fn is_secret(name: &str) -> bool {
    ["url", "password", "secret", "token", "credential"]
        .iter()
        .any(|word| name.contains(word))
}

/// The value of a setting as it may be shown.
pub(crate) fn shown(name: &str, value: &str) -> String {
    if !is_secret(name) {
        return value.to_owned();
    }
    if name.contains("url") {
        url(value)
    } else {
        MASK.to_owned()
    }
}

/// A URL without its password: in its authority, and in its query.
pub(crate) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        // Not a URL: `password=…` of a key-value string could stand anywhere.
        return MASK.to_owned();
    };
    let (before_query, query) = match rest.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    };
    // A password may hold any character, `/` and `@` too where it was not encoded: the last `@` ends it.
    let place = match before_query.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => format!("{who}@{host}"),
        },
        None => before_query.to_owned(),
    };
    let query = query.map(|query| {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret_parameter(name) => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{place}{}", query.unwrap_or_default())
}

fn is_secret_parameter(name: &str) -> bool {
    ["password", "passphrase", "sslpassword", "secret", "token"]
        .iter()
        .any(|word| name.to_lowercase().contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let cases = [
            (
                "postgresql://ada:hunter2@h:5432/db",
                "postgresql://ada:***@h:5432/db",
            ),
            (
                "postgresql://ada:a@b:c/hunter2@h/db?x=1",
                "postgresql://ada:***@h/db?x=1",
            ),
            (
                "postgresql://ada@h/db?password=hunter2&statements=named",
                "postgresql://ada@h/db?password=***&statements=named",
            ),
            (
                "postgresql:///db?host=/run&user=ada&PassWord=hunter2",
                "postgresql:///db?host=/run&user=ada&PassWord=***",
            ),
            ("host=h user=ada password=hunter2", "***"),
        ];
        for (url, wanted) in cases {
            assert_eq!(shown("database_url", url), wanted);
            assert!(!shown("database_url", url).contains("hunter2"));
        }
        assert_eq!(shown("api_token", "hunter2"), "***");
        assert_eq!(shown("slots", "10"), "10");
    }
}
