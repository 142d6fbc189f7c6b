//! Sends the built-in HTTP call and says what its answer means.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use serde_json::{Value, json};

use crate::http::call::HttpCall;
use crate::http::policy::HttpPolicy;
use crate::operation::{CallError, OperationCall};
use crate::task_error::chain;

/// The client of a worker, shared by all its operations.
pub(crate) struct HttpClient {
    /// Made at the first call: a worker that calls nobody needs no certificates on its machine.
    client: OnceLock<reqwest::Client>,
    policy: Arc<HttpPolicy>,
}

/// Resolves and vets; the client connects to what this gives, so a second resolution cannot differ.
struct VettingResolver {
    policy: Arc<HttpPolicy>,
}

#[derive(Debug, thiserror::Error)]
#[error("host `{host}` has no address that this worker may call")]
struct Forbidden {
    host: String,
}

impl Resolve for VettingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            // All or nothing: a name that also points inwards is not to be trusted with a retry.
            let found: Vec<SocketAddr> = found.collect();
            if found.is_empty() || !found.iter().all(|address| policy.admits(address.ip())) {
                return Err(Forbidden { host }.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl HttpClient {
    pub(crate) fn new(policy: HttpPolicy) -> Self {
        Self {
            client: OnceLock::new(),
            policy: Arc::new(policy),
        }
    }

    fn client(&self) -> Result<&reqwest::Client, CallError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_secs(10))
            .dns_resolver(VettingResolver {
                policy: Arc::clone(&self.policy),
            })
            .user_agent(concat!("aegis/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                CallError::not_applied(format!("no HTTP client can be made: {}", chain(&error)))
            })?;
        // Two first calls at once make two; one of them is kept.
        Ok(self.client.get_or_init(|| client))
    }

    /// Sends the call and reads its answer.
    pub(crate) async fn send(
        &self,
        http: &HttpCall,
        call: OperationCall,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        let url = self.vetted(&http.url)?;
        let method = Method::from_bytes(http.method.as_bytes())
            .map_err(|_| CallError::turned_away(format!("`{}` is no HTTP method", http.method)))?;
        let mut request = self
            .client()?
            .request(method, url)
            .timeout(timeout)
            .headers(headers(http, &call)?);
        if !http.body.is_null() {
            request = request.body(http.body.to_string());
        }
        match request.send().await {
            Ok(response) => judge(http, response).await,
            Err(error) if is_forbidden(&error) => {
                Err(CallError::turned_away(chain(&error.without_url())))
            }
            // Nothing was sent: the connection was never made.
            Err(error) if error.is_connect() || error.is_builder() => {
                Err(CallError::not_applied(chain(&error.without_url())))
            }
            Err(error) => Err(CallError::doubtful(chain(&error.without_url()))),
        }
    }

    /// An address written as such is not resolved, so it is vetted here.
    fn vetted(&self, text: &str) -> Result<Url, CallError> {
        let url = Url::parse(text)
            .map_err(|error| CallError::turned_away(format!("the URL cannot be used: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(CallError::turned_away(format!(
                "scheme `{}` is not called; use http or https",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(CallError::turned_away(
                "the URL carries credentials; send them in a header",
            ));
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse::<IpAddr>()
            && !self.policy.admits(address)
        {
            return Err(CallError::turned_away(format!(
                "this worker may not call {address}"
            )));
        }
        Ok(url)
    }
}

fn is_forbidden(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<Forbidden>().is_some() || error.source().is_some_and(is_forbidden)
}

fn headers(http: &HttpCall, call: &OperationCall) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        let bad = |_| CallError::turned_away(format!("header `{name}` cannot be sent"));
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| CallError::turned_away(format!("`{name}` is no header name")))?;
        headers.insert(name, HeaderValue::from_str(value).map_err(bad)?);
        Ok::<_, CallError>(())
    };
    if !http.body.is_null() {
        put(CONTENT_TYPE.as_str(), "application/json")?;
    }
    for (name, value) in &http.headers {
        put(name, value)?;
    }
    if let Some(trace) = &call.trace {
        put("traceparent", &trace.to_string())?;
    }
    // Last, so that no header of the handler's replaces them.
    put("idempotency-key", &call.id)?;
    put("aegis-operation", &call.id)?;
    put("aegis-task", &call.task.to_string())?;
    put("fencing-token", &call.fencing_token.to_string())?;
    Ok(headers)
}

async fn judge(http: &HttpCall, response: Response) -> Result<Value, CallError> {
    let status = response.status();
    let body = read(response, http.answer_bytes_max).await?;
    let value = || {
        if body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()))
    };
    match meaning(status, &http.retry_statuses) {
        Meaning::Succeeded => Ok(value()),
        Meaning::Failed => Err(CallError::Failed {
            message: format!("HTTP {status}"),
            detail: json!({ "status": status.as_u16(), "body": value() }),
        }),
        Meaning::TurnedAway => Err(CallError::TurnedAway {
            message: format!("HTTP {status}"),
            detail: json!({ "status": status.as_u16(), "body": value() }),
        }),
        Meaning::NotApplied => Err(CallError::not_applied(format!("HTTP {status}"))),
        Meaning::Doubtful => Err(CallError::doubtful(format!("HTTP {status}"))),
    }
}

/// Reads at most `limit` bytes.
async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= limit => body.extend_from_slice(&chunk),
            Ok(Some(_)) => {
                return Err(CallError::doubtful(format!(
                    "HTTP {} with an answer of more than {limit} bytes",
                    response.status()
                )));
            }
            Ok(None) => return Ok(body),
            Err(error) => {
                return Err(CallError::doubtful(format!(
                    "HTTP {} and then {}",
                    response.status(),
                    chain(&error.without_url())
                )));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Succeeded,
    Failed,
    /// Before anybody looked at the key: an earlier call with it may have happened.
    TurnedAway,
    NotApplied,
    Doubtful,
}

fn meaning(status: StatusCode, retry_statuses: &[u16]) -> Meaning {
    match status.as_u16() {
        200..=299 => Meaning::Succeeded,
        listed if retry_statuses.contains(&listed) => Meaning::NotApplied,
        401 | 403 | 407 => Meaning::TurnedAway,
        // 409 and 423: perhaps because the call of before is still being worked on.
        408 | 409 | 423 | 425 | 429 => Meaning::Doubtful,
        400..=499 => Meaning::Failed,
        // A redirect may follow an effect (303), so it is no refusal.
        _ => Meaning::Doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_says_so_is_a_refusal() {
        let of = |status: u16| meaning(StatusCode::from_u16(status).unwrap(), &[503]);
        for (status, expected) in [
            (200, Meaning::Succeeded),
            (204, Meaning::Succeeded),
            (303, Meaning::Doubtful),
            (400, Meaning::Failed),
            (401, Meaning::TurnedAway),
            (403, Meaning::TurnedAway),
            (404, Meaning::Failed),
            (407, Meaning::TurnedAway),
            (408, Meaning::Doubtful),
            (409, Meaning::Doubtful),
            (422, Meaning::Failed),
            (423, Meaning::Doubtful),
            (425, Meaning::Doubtful),
            (429, Meaning::Doubtful),
            (500, Meaning::Doubtful),
            (503, Meaning::NotApplied),
        ] {
            assert_eq!(of(status), expected, "{status}");
        }
    }

    #[test]
    fn a_url_is_vetted_before_anything_is_sent() {
        let client = HttpClient::new(HttpPolicy::public_only());
        for bad in [
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::ffff:10.0.0.1]/",
            "http://user:secret@example.com/",
            "ftp://example.com/",
            "nonsense",
        ] {
            let error = client.vetted(bad).unwrap_err();
            assert!(matches!(error, CallError::TurnedAway { .. }), "{bad}");
            assert!(!error.to_string().contains("secret"));
        }
        assert!(client.vetted("https://example.com/a").is_ok());
    }
}
