//! The address where a process shows its health and its metrics: `/livez`, `/readyz`, `/metrics`.
//!
//! Invariants: served from a thread and a runtime of its own, so a handler that blocks every other thread cannot silence it;
//! a probe's body says why.
//!
//! Never: anything that changes the process, a payload, an answer that waits for a database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::oneshot;

/// A verdict with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// 200, with what it does.
    Good(String),
    /// 503, with what is wrong.
    Bad(String),
}

/// What is asked at an address. Answers come from memory and at once.
pub trait Probes: Send + Sync + 'static {
    /// Does the process make progress? `Bad` asks the platform to restart it.
    fn live(&self) -> Health;
    /// Does it take work?
    fn ready(&self) -> Health;
    /// The metrics for somebody who accepts `accept`, and their content type.
    fn metrics(&self, accept: &str) -> (String, &'static str);
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listening {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Where; with the port that was chosen when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listening {
    /// Requests under way are cut off: whoever asks again finds nobody, and that is the truth.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends at once: its runtime does nothing that blocks.
            thread.join().ok();
        }
    }
}

/// Binds now, so that a wrong address is an error of the start, and serves from a thread of its own.
///
/// # Errors
/// The address is taken, not this machine's, or needs rights; or no thread can be had.
pub fn listen(address: SocketAddr, probes: Arc<dyn Probes>) -> std::io::Result<Listening> {
    let socket = std::net::TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new()
        .name("aegis-listen".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                let socket = match tokio::net::TcpListener::from_std(socket) {
                    Ok(socket) => socket,
                    Err(error) => {
                        tracing::error!(error = %error, "health and metrics are not served");
                        return;
                    }
                };
                tokio::select! {
                    served = serve(socket, probes) => {
                        if let Err(error) = served {
                            tracing::error!(error = %error, "health and metrics are not served any more");
                        }
                    }
                    _ = stopped => {}
                }
            });
            // Connections that are kept open are cut off.
            runtime.shutdown_timeout(Duration::ZERO);
        })?;
    Ok(Listening {
        address,
        stop: Some(stop),
        thread: Some(thread),
    })
}

async fn serve(socket: tokio::net::TcpListener, probes: Arc<dyn Probes>) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(nothing_here)
        .with_state(probes);
    axum::serve(socket, router).await
}

async fn live(State(probes): State<Arc<dyn Probes>>) -> impl IntoResponse {
    answer(probes.live())
}

async fn ready(State(probes): State<Arc<dyn Probes>>) -> impl IntoResponse {
    answer(probes.ready())
}

async fn metrics(State(probes): State<Arc<dyn Probes>>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let (text, kind) = probes.metrics(accept);
    ([(header::CONTENT_TYPE, kind)], text)
}

async fn nothing_here() -> impl IntoResponse {
    (
        StatusCode::NOT_FOUND,
        "nothing is here; there are /livez, /readyz and /metrics\n",
    )
}

fn answer(health: Health) -> (StatusCode, String) {
    match health {
        Health::Good(what) => (StatusCode::OK, format!("ok: {what}\n")),
        Health::Bad(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    struct Fixed;

    impl Probes for Fixed {
        fn live(&self) -> Health {
            Health::Good("moves".to_owned())
        }

        fn ready(&self) -> Health {
            Health::Bad("it drains".to_owned())
        }

        fn metrics(&self, accept: &str) -> (String, &'static str) {
            (format!("asked with {accept}\n"), "text/plain")
        }
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: a/b\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn probes_answer_with_their_reason_and_end_with_their_owner() {
        let listening = listen("127.0.0.1:0".parse().unwrap(), Arc::new(Fixed)).unwrap();
        let address = listening.address();
        let live = get(address, "/livez");
        assert!(
            live.starts_with("HTTP/1.1 200") && live.contains("ok: moves"),
            "{live}"
        );
        let ready = get(address, "/readyz");
        assert!(
            ready.starts_with("HTTP/1.1 503") && ready.contains("it drains"),
            "{ready}"
        );
        assert!(get(address, "/metrics").contains("asked with a/b"));
        assert!(get(address, "/").starts_with("HTTP/1.1 404"));
        let kept_open = TcpStream::connect(address).unwrap();
        drop(listening);
        assert!(TcpStream::connect(address).is_err(), "it still listens");
        drop(kept_open);
    }

    /// What is no request is turned away, and what never ends keeps nobody else waiting.
    #[test]
    fn rl_37_whatever_is_sent_the_next_probe_is_answered() {
        let listening = listen("127.0.0.1:0".parse().unwrap(), Arc::new(Fixed)).unwrap();
        let address = listening.address();
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1_000_000));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
        let sent: [&[u8]; 12] = [
            b"",
            b"\0\xff\xfe\r\n\r\n",
            b"GET",
            b"GET /livez HTTP/1.1\r\nHost: x\r\nAccept: ",
            b"GET /livez HTTP/9.9\r\n\r\n",
            b"get /livez\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: \xff\xfe\r\n\r\n",
            long.as_bytes(),
            many.as_bytes(),
        ];
        let mut open = Vec::new();
        for bytes in sent {
            let mut stream = TcpStream::connect(address).unwrap();
            // It may be turned away before all of it is sent.
            stream.write_all(bytes).ok();
            open.push(stream);
            assert!(get(address, "/livez").starts_with("HTTP/1.1 200"));
        }
        drop(open);
        assert!(get(address, "/livez").starts_with("HTTP/1.1 200"));
    }

    #[test]
    fn an_address_that_is_taken_is_an_error_at_once() {
        let first = listen("127.0.0.1:0".parse().unwrap(), Arc::new(Fixed)).unwrap();
        let second = listen(first.address(), Arc::new(Fixed));
        assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    }
}
