//! Functions that are dropped and made again: whether those who call the old one can call the new one.

use std::collections::BTreeMap;

use aegis_catalog::Name;

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{Form, ObjectKind};
use crate::report::Level;
use crate::statement::Statement;

/// How many arguments a call gives at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arity {
    least: usize,
    most: usize,
}

/// Of the functions that statements make.
pub(super) fn made_by(statements: &[Statement], world: &World<'_>) -> BTreeMap<Name, Vec<Arity>> {
    let mut made: BTreeMap<Name, Vec<Arity>> = BTreeMap::new();
    for statement in statements {
        if let Form::CreateFunction { name, .. } = &statement.form
            && let Some(arguments) = arguments(&statement.plain)
        {
            made.entry(world.name(name))
                .or_default()
                .push(arity(&arguments));
        }
    }
    made
}

/// DROP FUNCTION of what is made again below with other arguments.
pub(super) fn judge(world: &World<'_>, statement: &Statement, found: &mut Found) {
    let Form::Drop {
        kind: ObjectKind::Function,
        names,
        ..
    } = &statement.form
    else {
        return;
    };
    let ([name], Some(old)) = (names.as_slice(), arguments(&statement.plain)) else {
        return;
    };
    let given = arity(&old).most;
    let new = world.functions_to_come(name);
    let fits = |one: &Arity| one.least <= given && given <= one.most;
    if !new.is_empty() && !new.iter().any(fits) && !world.is_new_function(name) {
        found.push(
            "replace-function",
            Class::D,
            Level::Error,
            format!(
                "{name} is made again with other arguments: programs that call it with {given} fail"
            ),
        );
    }
}

/// The arguments in the first brackets, one by one. None: there are no brackets before the body.
fn arguments(plain: &str) -> Option<Vec<String>> {
    let start = plain.find('(')?;
    if plain[..start].contains(['\'', '$']) {
        return None;
    }
    let (mut found, mut one, mut depth, mut quoted) = (Vec::new(), String::new(), 0_u32, false);
    for character in plain[start..].chars() {
        quoted ^= character == '\'';
        match character {
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if character == ',' && depth == 1 && !quoted {
            found.push(std::mem::take(&mut one));
        } else {
            one.push(character);
        }
    }
    found.push(one);
    let bare = |one: String| one.trim_start_matches('(').trim().to_ascii_lowercase();
    Some(
        found
            .into_iter()
            .map(bare)
            .filter(|one| !one.is_empty())
            .collect(),
    )
}

fn arity(arguments: &[String]) -> Arity {
    let mut arity = Arity { least: 0, most: 0 };
    for one in arguments.iter().filter(|one| !one.starts_with("out ")) {
        if one.starts_with("variadic ") {
            arity.most = usize::MAX;
            continue;
        }
        arity.most = arity.most.saturating_add(1);
        if !one.contains(" default ") && !one.contains('=') {
            arity.least += 1;
        }
    }
    arity
}

#[cfg(test)]
mod tests {
    use super::{Arity, arguments, arity};

    #[test]
    fn arguments_are_counted_with_what_may_be_left_out() {
        let of = |plain: &str| arguments(plain).map(|all| arity(&all));
        let is = |least, most| Some(Arity { least, most });
        assert_eq!(of("drop function f(int, numeric(10, 2))"), is(2, 2));
        assert_eq!(of("create function f() returns int"), is(0, 0));
        assert_eq!(
            of("create function f(a int, b text default 'x, y', out c int)"),
            is(1, 2)
        );
        assert_eq!(of("create function f(a int[] = array[1, 2])"), is(0, 1));
        assert_eq!(of("create function f(variadic a int[])"), is(0, usize::MAX));
        assert_eq!(of("drop function f"), None);
        // The least call gives what has no default.
        assert_eq!(of("drop function s.f(a int)"), is(1, 1));
    }
}
