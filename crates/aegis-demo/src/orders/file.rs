//! Reading the CSV file: a header, then one order a line.
//!
//! The header must be right, or nothing is read. A line that is no record is refused by itself and the rest is
//! read on. Bounded: a file above [`MAX_FILE_BYTES`] is refused.

use std::path::{Path, PathBuf};

use super::Order;

/// The largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

const COLUMNS: [&str; 7] = [
    "order_id", "customer", "email", "item", "amount", "currency", "bank",
];

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrdersFile {
    /// Every order, good or bad, repeated ids among them, in file order.
    pub orders: Vec<Order>,
    /// Lines that are no orders.
    pub refused: Vec<RefusedRow>,
}

/// A line that cannot become a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is refused: {why}; {todo}")]
pub struct RefusedRow {
    /// The line of the file, from 1.
    pub line: u64,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub todo: String,
}

/// Why a file gave no orders at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrdersError {
    /// The file cannot be opened or read.
    #[error("the orders in {} cannot be read; check the path and its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than what an order file may be.
    #[error("{} has {bytes} bytes and an order file may have {MAX_FILE_BYTES}; split it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The first line does not name the columns.
    #[error("the first line must be `{}` and is `{found}`; correct the header", COLUMNS.join(","))]
    Header {
        /// What stood there.
        found: String,
    },
}

/// Reads a file of orders.
///
/// # Errors
/// [`OrdersError`] when there is no such file, it is too large, or its header is wrong.
pub fn read(path: &Path) -> Result<OrdersFile, OrdersError> {
    let unreadable = |source| OrdersError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(OrdersError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    parse(&std::fs::read(path).map_err(unreadable)?)
}

/// Reads orders from the bytes of a file.
///
/// # Errors
/// [`OrdersError::Header`] when the first line does not name the columns.
pub fn parse(bytes: &[u8]) -> Result<OrdersFile, OrdersError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes);
    let mut records = reader.byte_records();
    let header = match records.next() {
        Some(Ok(record)) => text_of(&record),
        _ => Vec::new(),
    };
    if header != COLUMNS {
        return Err(OrdersError::Header {
            found: header.join(","),
        });
    }
    let mut file = OrdersFile {
        orders: Vec::new(),
        refused: Vec::new(),
    };
    for (index, record) in records.enumerate() {
        match record {
            Ok(record) => {
                let line = record
                    .position()
                    .map_or(index as u64 + 2, csv::Position::line);
                match order(line, &record) {
                    Ok(order) => file.orders.push(order),
                    Err(refused) => file.refused.push(refused),
                }
            }
            Err(error) => file.refused.push(RefusedRow {
                line: error
                    .position()
                    .map_or(index as u64 + 2, csv::Position::line),
                why: format!("it is not CSV ({error})"),
                todo: "correct the line".into(),
            }),
        }
    }
    Ok(file)
}

fn text_of(record: &csv::ByteRecord) -> Vec<String> {
    record
        .iter()
        .map(|field| String::from_utf8_lossy(field).trim().to_owned())
        .collect()
}

fn order(line: u64, record: &csv::ByteRecord) -> Result<Order, RefusedRow> {
    let refused = |why: String, todo: &str| RefusedRow {
        line,
        why,
        todo: todo.to_owned(),
    };
    if record
        .iter()
        .any(|field| std::str::from_utf8(field).is_err())
    {
        return Err(refused("it is not UTF-8".into(), "save the file as UTF-8"));
    }
    let found = record.len();
    let Ok([order_id, customer, email, item, amount, currency, bank]) =
        <[String; 7]>::try_from(text_of(record))
    else {
        return Err(refused(
            format!(
                "it has {found} fields where the header has {}",
                COLUMNS.len()
            ),
            "complete it, and quote fields that hold a comma",
        ));
    };
    if order_id.is_empty() {
        return Err(refused(
            "it has no order_id".into(),
            "give it one: it is what makes a repeat harmless",
        ));
    }
    Ok(Order {
        order_id,
        customer,
        email,
        item,
        amount,
        currency,
        bank,
        line: Some(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "order_id,customer,email,item,amount,currency,bank\n";

    fn example() -> OrdersFile {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/orders.csv");
        read(&path).unwrap()
    }

    #[test]
    fn the_example_holds_300_orders_8_of_them_bad_and_3_odd_lines() {
        let file = example();
        let (first, repeats) = file.split_repeats();
        assert_eq!(
            (first.len(), repeats.len(), file.refused.len()),
            (300, 2, 1)
        );
        let same: Vec<bool> = repeats
            .iter()
            .map(|r| {
                let twin = first.iter().find(|f| f.order_id == r.order_id).unwrap();
                serde_json::to_value(twin).unwrap() == serde_json::to_value(r).unwrap()
            })
            .collect();
        assert_eq!(same, [true, false], "one exact repeat, one conflict");
        let bad: Vec<String> = first
            .iter()
            .filter_map(|o| o.validate().err())
            .map(|e| e.to_string())
            .collect();
        assert_eq!(bad.len(), 8, "{bad:#?}");
        for field in ["amount", "currency", "customer", "email", "bank"] {
            assert!(
                bad.iter().any(|b| b.contains(field)),
                "no example of a bad {field}"
            );
        }
        assert!(bad.iter().all(|b| b.starts_with("line ")), "{bad:#?}");
    }

    #[test]
    fn a_wrong_header_gives_nothing() {
        let error = parse(b"id,amount\n1,2\n").unwrap_err().to_string();
        assert!(error.contains("is `id,amount`"), "{error}");
        assert!(parse(b"").is_err());
    }

    #[test]
    fn a_broken_line_is_refused_alone() {
        let text =
            format!("{HEAD}O-1,a\nO-2,Ada,a@b.c,\"lamp, big\",1,EUR,northbank\n,x,x,x,x,x,x\n");
        let file = parse(text.as_bytes()).unwrap();
        assert_eq!(file.orders.len(), 1);
        assert_eq!(file.orders[0].item, "lamp, big");
        let told: Vec<String> = file.refused.iter().map(ToString::to_string).collect();
        assert!(
            told[0].starts_with("line 2 is refused: it has 2 fields where the header has 7"),
            "{told:?}"
        );
        assert!(
            told[1].starts_with("line 4 is refused: it has no order_id"),
            "{told:?}"
        );
        let bytes = [HEAD.as_bytes(), b"O-\xff,a,b,c,d,e,f\n"].concat();
        assert!(parse(&bytes).unwrap().refused[0].why.contains("UTF-8"));
    }

    #[test]
    fn a_missing_file_says_which() {
        let error = read(Path::new("no-such-orders.csv"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no-such-orders.csv"), "{error}");
    }
}
