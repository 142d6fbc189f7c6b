//! The handshake alone: is this a program that can be a handler?
//!
//! Never: a start message. A program that was only asked for its version has done nothing.

use std::time::Duration;

use aegis_protocol::limits::LINE_BYTES_MAX;
use aegis_protocol::{FromHandler, Hello, ToHandler, VERSIONS, agreed};

use crate::error::ExecError;
use crate::fault::Fault;
use crate::frame::{Order, Report, Status};
use crate::link::Link;
use crate::options::ExecOptions;
use crate::program::Program;

const STDERR_KEPT: usize = 100;
/// How long its supervisor may take to end it.
const END_WITHIN: Duration = Duration::from_secs(45);

/// Starts it, hears its first line, ends it.
pub(crate) async fn check(program: &Program, options: &ExecOptions) -> Result<(), ExecError> {
    let refused = |why: String| ExecError::Handshake {
        program: program.path().display().to_string(),
        why,
    };
    // Longer than anything here takes: nobody renews.
    let watched_for = options.hello_within + options.exit_within + Duration::from_mins(1);
    let mut link = Link::start(program, options, watched_for, &[])
        .map_err(|error| refused(Fault::NotStarted(error.to_string()).to_string()))?;
    let hello = ToHandler::Hello(Hello {
        versions: VERSIONS.to_vec(),
        line_bytes_max: LINE_BYTES_MAX,
    });
    match hello.to_line() {
        Ok(line) => link.orders.send(Order::Line(line)),
        Err(error) => return Err(refused(error.to_string())),
    }
    let mut stderr = Vec::new();
    let heard =
        tokio::time::timeout(options.hello_within, hear(&mut link, options, &mut stderr)).await;
    let outcome = heard.unwrap_or_else(|_| {
        Err(Refused::Says(
            Fault::NoHello(options.hello_within).to_string(),
        ))
    });
    let ended = matches!(outcome, Err(Refused::Ended(_))) || end(&mut link).await;
    link.close(ended).await;
    let why = match outcome {
        Ok(()) => return Ok(()),
        Err(Refused::Says(why) | Refused::Ended(why)) => why,
    };
    Err(match stderr.last() {
        Some(last) => refused(format!("{why}; its last words: {last}")),
        None => refused(why),
    })
}

/// Why it is no handler.
enum Refused {
    /// By what it says.
    Says(String),
    /// It has ended.
    Ended(String),
}

async fn hear(
    link: &mut Link,
    options: &ExecOptions,
    stderr: &mut Vec<String>,
) -> Result<(), Refused> {
    loop {
        let fault = match link.next().await {
            Some(Report::Line(line)) => match FromHandler::parse(&line) {
                Ok(FromHandler::Hello(hello)) => match agreed(VERSIONS, hello.version) {
                    Ok(_) => return Ok(()),
                    Err(error) => Fault::Version(error),
                },
                Ok(_) => return Err(Refused::Says("it says something else first".to_owned())),
                Err(bad) => Fault::BadLine(bad),
            },
            Some(Report::NotStarted(why)) => Fault::NotStarted(why),
            Some(Report::TooLong) => Fault::LongLine(options.line_bytes_max),
            Some(Report::Ended(ended)) => {
                return Err(Refused::Ended(match ended.status {
                    Some(Status::Code(code)) => format!("it exited with {code}"),
                    Some(Status::Signal(signal)) => format!("it was ended by signal {signal}"),
                    None => "it ended".to_owned(),
                }));
            }
            None => Fault::SupervisorGone,
            Some(Report::Stderr(line)) => {
                if stderr.len() < STDERR_KEPT {
                    stderr.push(String::from_utf8_lossy(&line).into_owned());
                }
                continue;
            }
            Some(_) => continue,
        };
        return Err(Refused::Says(fault.to_string()));
    }
}

/// Ends it. False: its supervisor does not say that it did.
async fn end(link: &mut Link) -> bool {
    link.orders.send(Order::Kill);
    let ended = async {
        loop {
            match link.next().await {
                Some(Report::Ended(_)) => return true,
                None => return false,
                Some(_) => {}
            }
        }
    };
    tokio::time::timeout(END_WITHIN, ended)
        .await
        .unwrap_or(false)
}
