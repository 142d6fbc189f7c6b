//! The database: schema, lineage, roles.

use serde_json::json;
use tokio_postgres::error::SqlState;

use super::look::Look;
use super::verdict::{Severity, Verdict};
use crate::error::StoreError;
use crate::generated::doctor::{self, LineageRightsRow, LineageRow, RoleSettingsRow, SchemaRow};
use crate::install;

/// The roles that a whole installation has.
const ROLES: [&str; 4] = [
    "aegis_engine",
    "aegis_lease",
    "aegis_submitter",
    "aegis_reader",
];

pub(super) async fn schema(look: &Look) -> Result<Verdict, StoreError> {
    match look.at(async |conn| doctor::schema(&conn).await).await {
        Ok(row) => Ok(judge_schema(&row, install::SCHEMA)),
        Err(StoreError::Database { source })
            if source.code().is_some_and(|code| {
                [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(code)
            }) =>
        {
            Ok(Verdict::new(
                Severity::Critical,
                "there is no Aegis schema in this database",
            )
            .todo("aegis db install, as the role that shall own it; or check the URL's database"))
        }
        Err(error) => Err(error),
    }
}

fn judge_schema(row: &SchemaRow, known: i32) -> Verdict {
    let values = json!({ "schema": row.schema, "min_schema": row.min_schema, "known": known });
    let seen = format!(
        "the database has schema {}, this binary knows {known}",
        row.schema
    );
    if row.min_schema > known {
        Verdict::new(
            Severity::Critical,
            format!("{seen}; at least {} is needed", row.min_schema),
        )
        .todo("use a newer release of aegis")
    } else if row.schema < known {
        Verdict::new(Severity::Critical, seen)
            .todo("aegis db install (of this version, as the owner)")
    } else if row.newest != Some(row.schema) {
        Verdict::new(
            Severity::Critical,
            format!("{seen}; its ledger ends with step {:?}", row.newest),
        )
        .todo("find out who changed aegis.schema_step; restore it from a backup")
    } else if row.schema > known {
        Verdict::new(Severity::Notice, seen).todo("upgrade this binary when the rollout is over")
    } else {
        Verdict::ok(seen)
    }
    .with(values)
}

pub(super) async fn lineage(look: &Look) -> Result<Verdict, StoreError> {
    let rights = look
        .at(async |conn| doctor::lineage_rights(&conn).await)
        .await?;
    if let Some(verdict) = judge_rights(&rights, look.store.config().role()) {
        return Ok(verdict);
    }
    let row = look.at(async |conn| doctor::lineage(&conn).await).await?;
    Ok(judge_lineage(&row))
}

fn judge_rights(rights: &LineageRightsRow, me: &str) -> Option<Verdict> {
    let grant = |role: &str| {
        format!("GRANT EXECUTE ON FUNCTION pg_control_system(), pg_walfile_name(pg_lsn) TO {role}")
    };
    if !rights.refused.is_empty() {
        let roles = rights.refused.join(", ");
        return Some(
            Verdict::new(Severity::Critical, format!("failover is not fenced: {roles} may not read the system identifier, so no claim and no write can be judged"))
                .with(json!({ "refused": rights.refused }))
                .todo(grant(&roles)),
        );
    }
    (!rights.mine).then(|| {
        Verdict::unknown(format!("{me} may not read the system identifier")).todo(grant(me))
    })
}

fn judge_lineage(row: &LineageRow) -> Verdict {
    let values = json!({ "system_identifier": row.found.to_string(), "installed_as": row.system_identifier.to_string(), "floor": row.floor,
        "timeline": row.timeline, "closed_why": row.closed_why });
    let adopt = "make sure that nothing writes to the old database, then: aegis db adopt --yes";
    if row.found != row.system_identifier {
        Verdict::new(
            Severity::Critical,
            "this is a copy under another system identifier: nothing can be claimed",
        )
        .todo(adopt)
    } else if let Some(why) = &row.closed_why {
        Verdict::new(Severity::Critical, format!("acquisition is closed: {why}")).todo(adopt)
    } else if let (Some(floor), Some(timeline)) = (row.lineage_floor, row.timeline) {
        Verdict::ok(format!("floor {floor}, timeline {timeline}"))
    } else {
        Verdict::unknown("the lineage cannot be read").todo("look at aegis.lineage()")
    }
    .with(values)
}

pub(super) async fn role_settings(look: &Look) -> Result<Verdict, StoreError> {
    let rows = look
        .at(async |conn| doctor::role_settings(&conn).await)
        .await?;
    Ok(judge_roles(&rows))
}

fn judge_roles(rows: &[RoleSettingsRow]) -> Verdict {
    let values = json!(
        rows.iter()
            .map(|row| (row.role.clone(), row.settings.clone()))
            .collect::<serde_json::Map<_, _>>()
    );
    let mut found = Vec::new();
    for role in ROLES {
        let Some(row) = rows.iter().find(|row| row.role == role) else {
            found.push(
                Verdict::new(Severity::Warning, format!("there is no role {role}"))
                    .todo("aegis db install, as a role with CREATEROLE"),
            );
            continue;
        };
        let get = |name: &str| row.settings.get(name).and_then(serde_json::Value::as_str);
        for (name, wanted, severity) in [
            (
                "default_transaction_isolation",
                "read committed",
                Severity::Critical,
            ),
            ("jit", "off", Severity::Critical),
        ] {
            if get(name) != Some(wanted) {
                found.push(wrong(role, name, get(name), wanted, severity));
            }
        }
        for (name, wanted) in [
            ("statement_timeout", "30s"),
            ("lock_timeout", "5s"),
            ("idle_in_transaction_session_timeout", "10s"),
        ] {
            if get(name).is_none_or(is_zero) {
                found.push(wrong(role, name, get(name), wanted, Severity::Warning));
            }
        }
        if ["aegis_engine", "aegis_lease"].contains(&role)
            && get("plan_cache_mode") != Some("force_generic_plan")
        {
            found.push(wrong(
                role,
                "plan_cache_mode",
                get("plan_cache_mode"),
                "force_generic_plan",
                Severity::Warning,
            ));
        }
    }
    Verdict::worst(found)
        .unwrap_or_else(|| Verdict::ok("every role carries its settings"))
        .with(values)
}

fn is_zero(value: &str) -> bool {
    value.trim_end_matches(char::is_alphabetic).trim() == "0"
}

fn wrong(role: &str, name: &str, found: Option<&str>, wanted: &str, severity: Severity) -> Verdict {
    let found = found.map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
    Verdict::new(severity, format!("{name} of {role} is {found}"))
        .todo(format!("ALTER ROLE {role} SET {name} = '{wanted}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_judged_from_both_sides() {
        let judged = |schema, min_schema, newest| {
            judge_schema(
                &SchemaRow {
                    schema,
                    min_schema,
                    steps: 1,
                    newest,
                },
                8,
            )
            .severity
        };
        assert_eq!(judged(8, 0, Some(8)), Severity::Ok);
        assert_eq!(judged(7, 0, Some(7)), Severity::Critical);
        assert_eq!(judged(9, 0, Some(9)), Severity::Notice);
        assert_eq!(judged(9, 9, Some(9)), Severity::Critical);
        assert_eq!(judged(8, 0, Some(7)), Severity::Critical);
        assert_eq!(judged(8, 0, None), Severity::Critical);
    }

    #[test]
    fn rights_that_the_engine_lacks_are_critical_and_those_that_the_doctor_lacks_unknown() {
        let rights = |refused: &[&str], mine| LineageRightsRow {
            refused: refused.iter().map(|&r| r.to_owned()).collect(),
            mine,
        };
        assert!(judge_rights(&rights(&[], true), "me").is_none());
        assert_eq!(
            judge_rights(&rights(&[], false), "me").unwrap().severity,
            Severity::Unknown
        );
        let verdict = judge_rights(&rights(&["aegis_engine"], true), "me").unwrap();
        assert_eq!(verdict.severity, Severity::Critical);
        assert!(verdict.todo[0].ends_with("TO aegis_engine"), "{verdict:?}");
    }

    #[test]
    fn every_setting_of_a_role_counts() {
        let whole = json!({ "default_transaction_isolation": "read committed", "jit": "off", "statement_timeout": "30s", "lock_timeout": "5s",
            "idle_in_transaction_session_timeout": "10s", "plan_cache_mode": "force_generic_plan" });
        let rows = |change: &dyn Fn(&mut serde_json::Value)| -> Vec<RoleSettingsRow> {
            ROLES
                .iter()
                .map(|role| {
                    let mut settings = whole.clone();
                    if *role == "aegis_engine" {
                        change(&mut settings);
                    }
                    RoleSettingsRow {
                        role: (*role).to_owned(),
                        settings,
                    }
                })
                .collect()
        };
        assert_eq!(judge_roles(&rows(&|_| {})).severity, Severity::Ok);
        for (name, value, severity) in [
            ("jit", "on", Severity::Critical),
            (
                "default_transaction_isolation",
                "serializable",
                Severity::Critical,
            ),
            ("lock_timeout", "0", Severity::Warning),
            ("statement_timeout", "0ms", Severity::Warning),
            ("plan_cache_mode", "auto", Severity::Warning),
        ] {
            let verdict = judge_roles(&rows(&|settings| settings[name] = json!(value)));
            assert_eq!(verdict.severity, severity, "{name}");
            assert!(
                verdict.todo[0].contains(name) && verdict.seen.contains("aegis_engine"),
                "{verdict:?}"
            );
        }
        assert_eq!(judge_roles(&rows(&|_| {})[1..]).severity, Severity::Warning);
    }
}
