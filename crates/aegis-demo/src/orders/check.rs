//! The rules of one order: what the task's `validate` step asks, pure and without I/O.
//!
//! Every fault of an order is reported, not only the first. Amounts are whole minor units; no floating point.

use super::Order;

/// The largest amount of one order, in major units of its currency (yen and kronor count as they are).
pub const MAX_AMOUNT_MAJOR: i64 = 1_000_000;

/// The currencies that the payment service takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// Euro.
    Eur,
    /// US dollar.
    Usd,
    /// Pound sterling.
    Gbp,
    /// Swedish krona.
    Sek,
    /// Polish zloty.
    Pln,
    /// Japanese yen, which has no minor unit.
    Jpy,
}

impl Currency {
    const ALL: [(&'static str, Self); 6] = [
        ("EUR", Self::Eur),
        ("USD", Self::Usd),
        ("GBP", Self::Gbp),
        ("SEK", Self::Sek),
        ("PLN", Self::Pln),
        ("JPY", Self::Jpy),
    ];

    /// The currency of a three-letter code, in capitals.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == code)
            .map(|(_, currency)| *currency)
    }

    /// How many digits stand behind the decimal point (ISO 4217).
    pub fn minor_digits(self) -> usize {
        if self == Self::Jpy { 0 } else { 2 }
    }
}

/// The two banks, which differ in how long they remember an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Remembers keys for long: `POST /charges`.
    North,
    /// Remembers keys for some seconds only: `POST /charges/short`.
    Quick,
}

/// An order that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidOrder {
    /// The amount in minor units (cents; yen as they are); above 0.
    pub amount_minor: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// Who charges.
    pub bank: Bank,
}

/// One field that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The column.
    pub field: &'static str,
    /// What stood there.
    pub value: String,
    /// Why it is refused.
    pub why: String,
    /// What to do about it.
    pub todo: String,
}

/// An order with at least one bad field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}order {order_id}: {}", line.map(|l| format!("line {l}, ")).unwrap_or_default(), faults(errors))]
pub struct InvalidOrder {
    /// The order.
    pub order_id: String,
    /// Its line, when it came from a file.
    pub line: Option<u64>,
    /// Every bad field, in column order; never empty.
    pub errors: Vec<FieldError>,
}

fn faults(errors: &[FieldError]) -> String {
    let all: Vec<String> = errors
        .iter()
        .map(|e| format!("{} `{}` {}; {}", e.field, e.value, e.why, e.todo))
        .collect();
    all.join(". ")
}

impl Order {
    /// Judges every field.
    ///
    /// # Errors
    /// [`InvalidOrder`] with each bad field: its value, why it is refused, and what to do.
    pub fn validate(&self) -> Result<ValidOrder, InvalidOrder> {
        let mut errors = Vec::new();
        let mut bad = |field, value: &str, why: String, todo: &str| {
            errors.push(FieldError {
                field,
                value: value.to_owned(),
                why,
                todo: todo.to_owned(),
            });
        };
        if self.customer.trim().is_empty() {
            bad(
                "customer",
                &self.customer,
                "is empty".into(),
                "say who ordered",
            );
        }
        if !is_email(&self.email) {
            bad(
                "email",
                &self.email,
                "is not an address like name@host".into(),
                "correct the address",
            );
        }
        if self.item.trim().is_empty() {
            bad(
                "item",
                &self.item,
                "is empty".into(),
                "say what was ordered",
            );
        }
        let currency = Currency::from_code(&self.currency);
        // Two digits are assumed beside an unknown currency, so that the amount's own faults are told too.
        let amount = amount_minor(&self.amount, currency.map_or(2, Currency::minor_digits));
        if let Err((why, todo)) = &amount {
            bad("amount", &self.amount, why.clone(), todo);
        }
        if currency.is_none() {
            bad(
                "currency",
                &self.currency,
                "is not one that the payment service takes".into(),
                "use EUR, USD, GBP, SEK, PLN or JPY",
            );
        }
        let bank = match self.bank.as_str() {
            "northbank" => Some(Bank::North),
            "quickbank" => Some(Bank::Quick),
            other => {
                bad(
                    "bank",
                    other,
                    "is not known".into(),
                    "use northbank or quickbank",
                );
                None
            }
        };
        match (amount, currency, bank) {
            (Ok(amount_minor), Some(currency), Some(bank)) if errors.is_empty() => Ok(ValidOrder {
                amount_minor,
                currency,
                bank,
            }),
            _ => Err(InvalidOrder {
                order_id: self.order_id.clone(),
                line: self.line,
                errors,
            }),
        }
    }
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && host.contains('.')
            && !host.contains('@')
            && !text.contains(char::is_whitespace)
    })
}

fn amount_minor(text: &str, digits: usize) -> Result<i64, (String, &'static str)> {
    const NUMBER: &str = "write a number such as 24.90";
    let not_a_number = || ("is not a number".to_owned(), NUMBER);
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (major, minor) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if major.is_empty() || !all_digits(major) || !all_digits(minor) || unsigned.ends_with('.') {
        return Err(not_a_number());
    }
    if unsigned.len() < text.len() {
        return Err((
            "is negative".to_owned(),
            "a refund is not an order; send the amount without a sign",
        ));
    }
    if minor.len() > digits {
        return Err((
            format!(
                "has {} digits behind the point where the currency has {digits}",
                minor.len()
            ),
            "round it to what the currency has",
        ));
    }
    let too_large = (
        format!("is above the limit of {MAX_AMOUNT_MAJOR}"),
        "ask a person; this looks like a mistake",
    );
    // 12 digits hold every amount below the limit and keep the arithmetic far from overflow.
    if major.len() > 12 {
        return Err(too_large);
    }
    let major: i64 = major.parse().map_err(|_| not_a_number())?;
    if major >= MAX_AMOUNT_MAJOR {
        return Err(too_large);
    }
    let scaled = format!("{minor:0<digits$}");
    let minor: i64 = if scaled.is_empty() {
        0
    } else {
        scaled.parse().map_err(|_| not_a_number())?
    };
    let scale = if digits == 0 { 1 } else { 100 };
    match major * scale + minor {
        0 => Err(("is zero".to_owned(), "an order has a price; write it")),
        amount => Ok(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            order_id: "O-1".into(),
            customer: "Ada".into(),
            email: "ada@example.com".into(),
            item: "lamp".into(),
            amount: "24.90".into(),
            currency: "EUR".into(),
            bank: "northbank".into(),
            line: None,
        }
    }

    fn told(change: impl FnOnce(&mut Order)) -> String {
        let mut o = order();
        change(&mut o);
        o.validate().unwrap_err().to_string()
    }

    #[test]
    fn a_good_order_is_accepted_in_minor_units() {
        assert_eq!(order().validate().unwrap().amount_minor, 2490);
        for (amount, currency, minor) in [
            ("7", "EUR", 700),
            ("7.5", "USD", 750),
            ("1200", "JPY", 1200),
            ("0.01", "GBP", 1),
        ] {
            let o = Order {
                amount: amount.into(),
                currency: currency.into(),
                ..order()
            };
            assert_eq!(
                o.validate().unwrap().amount_minor,
                minor,
                "{amount} {currency}"
            );
        }
    }

    #[test]
    fn each_fault_names_field_value_reason_and_remedy() {
        assert_eq!(
            told(|o| o.amount = "-5.00".into()),
            "order O-1: amount `-5.00` is negative; a refund is not an order; send the amount without a sign"
        );
        assert_eq!(
            told(|o| {
                o.currency = "XBT".into();
                o.line = Some(7);
            }),
            "line 7, order O-1: currency `XBT` is not one that the payment service takes; \
             use EUR, USD, GBP, SEK, PLN or JPY"
        );
        assert!(told(|o| o.amount = "twelve".into()).contains("amount `twelve` is not a number"));
        assert!(told(|o| o.amount = "1.".into()).contains("is not a number"));
        assert!(told(|o| o.amount = String::new()).contains("is not a number"));
        assert!(told(|o| o.amount = "0.00".into()).contains("is zero"));
        assert!(told(|o| o.amount = "99999999999999999999".into()).contains("above the limit"));
        assert!(told(|o| o.customer = "  ".into()).contains("customer `  ` is empty"));
        assert!(told(|o| o.email = "nobody".into()).contains("email `nobody`"));
        assert!(told(|o| o.bank = "moonbank".into()).contains("bank `moonbank` is not known"));
        assert!(
            told(|o| {
                o.currency = "JPY".into();
            })
            .contains("has 2 digits behind the point where the currency has 0")
        );
    }

    #[test]
    fn all_faults_are_told_together() {
        let text = told(|o| {
            o.customer = String::new();
            o.amount = "x".into();
            o.currency = "??".into();
        });
        assert!(
            text.contains("customer") && text.contains("amount") && text.contains("currency"),
            "{text}"
        );
    }
}
