//! Keys and values of labels that an API server accepts.

/// Characters allowed in names besides letters and digits, except at their ends.
const PUNCTUATION: [char; 3] = ['-', '_', '.'];

/// True if it is a name, optionally after a DNS subdomain and a slash.
pub(super) fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').unwrap_or(("none", text));
    is_subdomain(prefix) && !name.is_empty() && is_label_value(name)
}

/// True if it is a name or empty.
pub(super) fn is_label_value(text: &str) -> bool {
    text.len() <= 63 && is_name(text, &PUNCTUATION)
}

fn is_subdomain(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && is_name(part, &['-']);
    text.len() <= 253 && text.split('.').all(is_part) && *text == *text.to_lowercase()
}

/// True if it consists of letters and digits, and inside of it also of these.
fn is_name(text: &str, inside: &[char]) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || inside.contains(&c);
    text.chars().all(is_allowed) && !text.starts_with(inside) && !text.ends_with(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_an_api_server() {
        let long = |text: &str| {
            text.replace("LONG", &"a".repeat(63))
                .replace("PREFIX", &"a".repeat(253))
        };
        for key in long("app example.org/app a A_b-c.d LONG PREFIX/a").split(' ') {
            assert!(is_label_key(key), "{key}");
        }
        let wrong =
            "/app example.org/ Example.org/app a/b/c -a a- ä x..y/a -x/a x-/a LONGa PREFIXa/a";
        for key in long(wrong).split(' ').chain(["", "a b"]) {
            assert!(!is_label_key(key), "{key}");
        }
        for value in long("a A.b_c-9 LONG").split(' ').chain([""]) {
            assert!(is_label_value(value), "{value}");
        }
        for value in long("- a. _a ä LONGa").split(' ').chain(["b c"]) {
            assert!(!is_label_value(value), "{value}");
        }
    }
}
