//! Old and new on either side: what a later worker adds within a version an older reader passes over; what a handler of
//! another version says is refused at the handshake, before anything else.

use aegis_protocol::{FromHandler, ToHandler, VERSIONS, agreed};
use serde_json::json;

use crate::{lines, schema};

#[test]
fn an_older_reader_passes_over_what_a_later_worker_adds() {
    let schema = schema("to-handler");
    for (line, value) in lines("vectors/from-the-future.jsonl") {
        assert!(schema.is_valid(&value), "{line}");
        serde_json::from_str::<ToHandler>(&line).unwrap();
    }
}

#[test]
fn an_older_handler_leaves_out_what_is_optional() {
    for line in [
        r#"{"type":"operation","id":1,"name":"a","key":"b","class":"blind"}"#,
        r#"{"type":"settle","id":1,"name":"a","key":"b","outcome":"succeeded"}"#,
        r#"{"type":"probed","id":1,"name":"a","key":"b","found":"happened"}"#,
        r#"{"type":"error","code":"a","message":"b","retryable":true}"#,
    ] {
        FromHandler::parse(line.as_bytes()).unwrap();
    }
}

#[test]
fn a_newer_handler_meets_an_older_worker_only_in_what_that_one_offers() {
    let newest = VERSIONS.iter().max().unwrap();
    assert_eq!(agreed(VERSIONS, *newest), Ok(*newest));
    assert!(agreed(VERSIONS, newest + 1).is_err());
    // What its newer version names is refused by name, not passed over: it would mean something.
    let later = json!({ "type": "checkpoint", "id": 1, "value": 1, "compress": true }).to_string();
    let error = FromHandler::parse(later.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `compress`"), "{error}");
}
