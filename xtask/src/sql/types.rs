//! Which Rust type stands for which PostgreSQL type.
//!
//! Never: a guess. A type that is not in the table is refused, with what to write instead.

use tokio_postgres::types::{Kind, Type};

use super::scan::Param;

/// A scalar type in both languages.
struct Scalar {
    sql: Type,
    array: Type,
    /// Names of the two in `tokio_postgres::types::Type`.
    constants: (&'static str, &'static str),
    /// As a parameter, borrowed where that is cheaper; and as a column.
    param: &'static str,
    column: &'static str,
}

macro_rules! scalars {
    ($($sql:ident / $array:ident: $param:literal, $column:literal;)*) => {
        [$(Scalar {
            sql: Type::$sql,
            array: Type::$array,
            constants: (stringify!($sql), stringify!($array)),
            param: $param,
            column: $column,
        }),*]
    };
}

#[rustfmt::skip]
static SCALARS: [Scalar; 12] = scalars! {
    BOOL / BOOL_ARRAY: "bool", "bool";
    INT2 / INT2_ARRAY: "i16", "i16";
    INT4 / INT4_ARRAY: "i32", "i32";
    INT8 / INT8_ARRAY: "i64", "i64";
    FLOAT8 / FLOAT8_ARRAY: "f64", "f64";
    OID / OID_ARRAY: "u32", "u32";
    TEXT / TEXT_ARRAY: "&str", "String";
    NAME / NAME_ARRAY: "&str", "String";
    BYTEA / BYTEA_ARRAY: "&[u8]", "Vec<u8>";
    UUID / UUID_ARRAY: "Uuid", "Uuid";
    TIMESTAMPTZ / TIMESTAMPTZ_ARRAY: "Timestamp", "Timestamp";
    JSONB / JSONB_ARRAY: "&Value", "Value";
};

/// How a parameter is written in Rust.
pub(super) struct ParamType {
    /// Name of the constant in `tokio_postgres::types::Type`.
    pub(super) constant: &'static str,
    /// Its Rust type; `'a` stands where a lifetime may.
    pub(super) rust: String,
}

fn find(sql: &Type) -> Result<(&'static Scalar, bool), String> {
    SCALARS
        .iter()
        .find_map(|scalar| match sql {
            _ if scalar.sql == *sql => Some((scalar, false)),
            _ if scalar.array == *sql => Some((scalar, true)),
            _ => None,
        })
        .ok_or_else(|| advice(sql))
}

fn advice(sql: &Type) -> String {
    let instead = match (sql, sql.kind()) {
        (_, Kind::Domain(base)) => format!("cast it to its base type, `::{}`", base.name()),
        (&Type::INTERVAL, _) => {
            "an interval has months and days: use milliseconds in a bigint".to_owned()
        }
        (&Type::TIMESTAMP, _) => "it has no zone: use timestamptz".to_owned(),
        (&Type::JSON, _) => "use jsonb".to_owned(),
        (_, Kind::Enum(_)) | (&Type::VARCHAR | &Type::BPCHAR | &Type::UNKNOWN, _) => {
            "cast it to text".to_owned()
        }
        (&Type::VOID, _) => "select something from the function's result instead".to_owned(),
        (&Type::NUMERIC | &Type::FLOAT4, _) => "cast it to bigint or double precision".to_owned(),
        _ => "cast it to a type of the table in xtask/src/sql/types.rs, or add it there".to_owned(),
    };
    format!("type `{}` has no Rust type here: {instead}", sql.name())
}

/// The type of a column that the caller of a COPY writes.
pub(super) fn written(sql: &Type) -> Result<ParamType, String> {
    let (scalar, array) = find(sql)?;
    Ok(ParamType {
        constant: if array {
            scalar.constants.1
        } else {
            scalar.constants.0
        },
        rust: String::new(),
    })
}

/// The Rust type of a parameter.
pub(super) fn param(sql: &Type, param: &Param) -> Result<ParamType, String> {
    let (scalar, array) = find(sql)?;
    let bare = scalar.param.replacen('&', "&'a ", 1);
    if param.optional_elements && !array {
        return Err(format!(
            "`:{}[?]` is no array but `{}`",
            param.name,
            sql.name()
        ));
    }
    let inner = match (array, param.optional_elements) {
        (false, _) => bare,
        (true, false) => format!("&'a [{bare}]"),
        (true, true) => format!("&'a [Option<{bare}>]"),
    };
    let rust = if param.optional {
        format!("Option<{inner}>")
    } else {
        inner
    };
    let constant = if array {
        scalar.constants.1
    } else {
        scalar.constants.0
    };
    Ok(ParamType { constant, rust })
}

/// The Rust type of a result column.
pub(super) fn column(
    sql: &Type,
    nullable: bool,
    nullable_elements: bool,
) -> Result<String, String> {
    let (scalar, array) = find(sql)?;
    let inner = match (array, nullable_elements) {
        (false, true) => return Err(format!("is no array but `{}`", sql.name())),
        (false, false) => scalar.column.to_owned(),
        (true, false) => format!("Vec<{}>", scalar.column),
        (true, true) => format!("Vec<Option<{}>>", scalar.column),
    };
    Ok(if nullable {
        format!("Option<{inner}>")
    } else {
        inner
    })
}

#[cfg(test)]
mod tests {
    //! The table, its wrappings, and what is refused.

    use tokio_postgres::types::Type;

    use super::super::scan::Param;
    use super::{column, param};

    fn named(optional: bool, optional_elements: bool) -> Param {
        Param {
            name: "p".to_owned(),
            optional,
            optional_elements,
        }
    }

    #[test]
    fn params_are_borrowed_and_wrapped() {
        let rust = |sql: &Type, p: Param| param(sql, &p).map(|found| found.rust);
        assert_eq!(rust(&Type::UUID, named(false, false)).unwrap(), "Uuid");
        assert_eq!(
            rust(&Type::TEXT, named(true, false)).unwrap(),
            "Option<&'a str>"
        );
        assert_eq!(
            rust(&Type::BYTEA_ARRAY, named(false, true)).unwrap(),
            "&'a [Option<&'a [u8]>]"
        );
        assert_eq!(
            rust(&Type::INT8_ARRAY, named(true, false)).unwrap(),
            "Option<&'a [i64]>"
        );
        assert!(
            rust(&Type::INT8, named(false, true))
                .unwrap_err()
                .contains("is no array")
        );
        assert_eq!(
            param(&Type::UUID_ARRAY, &named(false, false))
                .unwrap()
                .constant,
            "UUID_ARRAY"
        );
    }

    #[test]
    fn columns_are_owned_and_wrapped() {
        assert_eq!(
            column(&Type::TEXT_ARRAY, true, false).unwrap(),
            "Option<Vec<String>>"
        );
        assert_eq!(
            column(&Type::BYTEA_ARRAY, false, true).unwrap(),
            "Vec<Option<Vec<u8>>>"
        );
        assert!(column(&Type::TEXT, false, true).is_err());
    }

    #[test]
    fn what_is_refused_comes_with_advice() {
        for (sql, advice) in [
            (Type::INTERVAL, "milliseconds in a bigint"),
            (Type::TIMESTAMP, "use timestamptz"),
            (Type::NUMERIC, "bigint or double precision"),
            (Type::VOID, "select something"),
            (Type::POINT, "table in xtask/src/sql/types.rs"),
        ] {
            let said = column(&sql, false, false).unwrap_err();
            assert!(said.contains(advice), "{said}");
        }
    }
}
