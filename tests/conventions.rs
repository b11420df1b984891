//! What reviewers would otherwise have to remember about the sources of this workspace: a type's
//! name stands for one type, nothing is public that nobody uses, functions fit on a screen, and a
//! comment says something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what is built, not written.
const BUILT: [&str; 3] = [".git", "artefacts", "target"];
/// The crates of the product. `cli` comes with the binary.
const PRODUCT: [&str; 8] = [
    "cli",
    "common",
    "common/core",
    "common/go-compat",
    "prober",
    "prober/core",
    "weeder",
    "weeder/core",
];
/// Names that each crate may give to a type of its own.
const OWN: [&str; 2] = ["Config", "Error"];
/// The most lines of code in a function, its signature and last brace included.
const LONGEST: usize = 70;
/// Words that say nothing without a number.
const CITING: [&str; 7] = [
    "D",
    "decision",
    "decisions",
    "fault",
    "faults",
    "rule",
    "rules",
];
/// What stands between two numbers.
const BETWEEN: [&str; 2] = ["and", "to"];
/// A piece of Rust, and the line on which it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lexeme<'a> {
    text: &'a str,
    line: usize,
}

impl Lexeme<'_> {
    fn is_name(&self) -> bool {
        self.text
            .starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
    }

    fn is_comment(&self) -> bool {
        self.text.starts_with("//") || self.text.starts_with("/*")
    }
}

/// A file, without its comments and strings, and its comments.
struct SourceFile {
    path: String,
    text: String,
}

impl SourceFile {
    /// All of it, but the modules that are there for tests only where these are not wanted.
    fn lexemes(&self, with_tests: bool) -> Vec<Lexeme<'_>> {
        let mut lexemes = lexemes(&self.text);
        while !with_tests
            && let Some((begin, end)) = (0..lexemes.len()).find_map(|at| test_module(&lexemes, at))
        {
            lexemes.drain(begin..=end);
        }
        lexemes
    }

    /// The same without comments.
    fn code(&self, with_tests: bool) -> Vec<Lexeme<'_>> {
        let mut code = self.lexemes(with_tests);
        code.retain(|lexeme| !lexeme.is_comment());
        code
    }

    fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| ["tests", "benches", "tests.rs"].contains(&part))
    }

    /// The folder of the crate that it belongs to, and whether it is one of the crate's own tests
    /// or benchmarks, which use the crate as anybody else does.
    fn home(&self) -> (&str, bool) {
        let folder = Path::new(&self.path)
            .ancestors()
            .skip(1)
            .find(|folder| root().join(folder).join("Cargo.toml").is_file())
            .and_then(Path::to_str)
            .expect("it belongs to a crate");
        let inside = self.path[folder.len()..].trim_start_matches('/');
        (folder, !inside.starts_with("src/") && inside != "build.rs")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the repository.
fn sources() -> Vec<SourceFile> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let (path, kind) = (
                folder.join(entry.file_name()),
                entry.file_type().expect("a type"),
            );
            if kind.is_dir() && !BUILT.iter().any(|built| entry.file_name() == *built) {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "rs") {
                found.push(SourceFile {
                    text: fs::read_to_string(root().join(&path)).expect("text"),
                    path: path.to_str().expect("a name in UTF-8").to_owned(),
                });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 300, "only {} files", found.len());
    found
}

/// How long the string, comment, name or number is that a text begins with; anything else is one
/// character.
fn length(text: &str) -> usize {
    let until = |end: fn(char) -> bool| text.find(end).unwrap_or(text.len());
    let quoted = |begin: usize| {
        let mut is_escaped = false;
        let mut rest = text[begin..].char_indices().skip(1);
        rest.find(|(_, letter)| {
            let ends = *letter == '"' && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            ends
        })
        .map_or(text.len(), |(at, _)| begin + at + 1)
    };
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    match (&text[..word], &text[word..]) {
        ("r" | "br" | "cr", rest) if rest.starts_with(['"', '#']) => {
            let hashes = rest.len() - rest.trim_start_matches('#').len();
            if rest[hashes..].starts_with('"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let begin = word + hashes + 1;
                text[begin..]
                    .find(&end)
                    .map_or(text.len(), |at| begin + at + end.len())
            } else {
                // A name that is also a keyword.
                word + 1
                    + text[word + 1..]
                        .find(|letter| !is_word(letter))
                        .unwrap_or(0)
            }
        }
        ("" | "b" | "c", rest) if rest.starts_with('"') => quoted(word),
        ("" | "b", rest) if rest.starts_with('\'') => match rest[1..].chars().next() {
            Some('\\') => word + 3 + rest[3..].find('\'').map_or(0, |at| at + 1),
            Some(letter) if rest[1 + letter.len_utf8()..].starts_with('\'') => {
                word + letter.len_utf8() + 2
            }
            // A lifetime.
            _ => {
                word + 1
                    + rest[1..]
                        .find(|letter| !is_word(letter))
                        .unwrap_or(rest.len() - 1)
            }
        },
        ("", rest) if rest.starts_with("//") => until(|letter| letter == '\n'),
        ("", rest) if rest.starts_with("/*") => {
            let (mut depth, mut at) = (0, 0);
            while at < rest.len() {
                match &rest.as_bytes()[at..] {
                    [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                    [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
            at
        }
        ("", rest) => rest.chars().next().map_or(0, char::len_utf8),
        _ => word,
    }
}

fn lexemes(text: &str) -> Vec<Lexeme<'_>> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    loop {
        let begin = rest.trim_start();
        line += rest[..rest.len() - begin.len()].matches('\n').count();
        if begin.is_empty() {
            return found;
        }
        let text = &begin[..length(begin)];
        found.push(Lexeme { text, line });
        line += text.matches('\n').count();
        rest = &begin[text.len()..];
    }
}

/// Where the block ends that the first brace from here on begins; none where a semicolon comes
/// first.
fn block(code: &[Lexeme<'_>], from: usize) -> Option<(usize, usize)> {
    let mut depth = 0;
    let begin = (from..code.len()).find(|at| {
        match code[*at].text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        depth == 0 && ["{", ";"].contains(&code[*at].text)
    })?;
    let mut depth = 0;
    let end = (begin..code.len()).find(|at| {
        match code[*at].text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    (code[begin].text == "{").then_some((begin, end))
}

/// Where a module for tests begins and ends, if one begins here.
fn test_module(code: &[Lexeme<'_>], at: usize) -> Option<(usize, usize)> {
    let words = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let begins = code[at..]
        .iter()
        .map(|lexeme| lexeme.text)
        .take(words.len())
        .eq(words);
    begins
        .then(|| block(code, at + words.len()))
        .flatten()
        .map(|(_, end)| (at, end))
}

/// The types that a file defines; those of a trait are none of its own.
fn types<'a>(code: &[Lexeme<'a>]) -> Vec<Lexeme<'a>> {
    let mut found = Vec::new();
    // Where the innermost trait or implementation ends.
    let mut inside = 0;
    for (at, pair) in code.windows(2).enumerate() {
        let before = at.checked_sub(1).map_or("", |before| code[before].text);
        let is_item = ["", "}", ";", "{", "]", "unsafe"].contains(&before);
        match pair[0].text {
            "impl" if is_item => inside = block(code, at).map_or(inside, |(_, end)| end),
            "type" if at < inside => continue,
            "struct" | "enum" | "trait" | "type" | "union"
                if pair[1].text.starts_with(char::is_uppercase) && before != "$" =>
            {
                found.push(pair[1]);
                if pair[0].text == "trait" {
                    inside = block(code, at).map_or(inside, |(_, end)| end);
                }
            }
            _ => {}
        }
    }
    found
}

/// Each public item of a file, with the names in what others see of it.
fn public<'a>(code: &[Lexeme<'a>]) -> Vec<(Lexeme<'a>, BTreeSet<&'a str>)> {
    let mut found = Vec::new();
    for (at, lexeme) in code.iter().enumerate() {
        let is_kind = |text: &str| {
            [
                "const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union",
            ]
            .contains(&text)
        };
        let words = ["async", "const", "unsafe", "extern"];
        if lexeme.text != "pub" || code.get(at + 1).is_none_or(|next| next.text == "(") {
            continue;
        }
        let Some(kind) = (at + 1..code.len()).find(|next| {
            let text = code[*next].text;
            is_kind(text) && !(text == "const" && is_kind(code[*next + 1].text))
                || !words.contains(&text) && !text.starts_with('"')
        }) else {
            continue;
        };
        // A field, or an export: what it names is there in its own right.
        if !is_kind(code[kind].text) || !code[kind + 1].is_name() {
            continue;
        }
        let begin_end = block(code, kind);
        let is_body = ["fn", "mod"].contains(&code[kind].text);
        let end = match begin_end {
            Some((begin, end)) => {
                if is_body {
                    begin
                } else {
                    end
                }
            }
            None => (kind..code.len())
                .find(|at| code[*at].text == ";")
                .unwrap_or(code.len()),
        };
        let seen = code[kind + 2..end].iter().filter(|lexeme| lexeme.is_name());
        found.push((code[kind + 1], seen.map(|lexeme| lexeme.text).collect()));
    }
    found
}

/// What the types of a trait are in its implementations, which whoever sees the trait sees.
fn associated<'a>(code: &[Lexeme<'a>]) -> impl Iterator<Item = &'a str> {
    let aliases =
        (1..code.len()).filter(|at| code[*at].text == "type" && code[at - 1].text != "pub");
    aliases.flat_map(|at| {
        let names = code[at..].iter().take_while(|lexeme| lexeme.text != ";");
        names
            .filter(|lexeme| lexeme.is_name())
            .map(|lexeme| lexeme.text)
    })
}

/// Whether a comment cites, and says nothing.
fn is_number(comment: &str) -> bool {
    let words: Vec<&str> = comment
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let is_number = |word: &&str| word.bytes().all(|digit| digit.is_ascii_digit());
    let cites = |word: &&str| {
        CITING
            .iter()
            .any(|citing| citing.eq_ignore_ascii_case(word))
    };
    words.iter().any(is_number)
        && words
            .first()
            .is_some_and(|word| is_number(word) || cites(word))
        && words
            .iter()
            .all(|word| is_number(word) || cites(word) || BETWEEN.contains(word))
}

/// The comments of a file, those on neighbouring lines together.
fn comments(source: &SourceFile) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    let lexemes = source.lexemes(false);
    for (at, lexeme) in lexemes
        .iter()
        .enumerate()
        .filter(|(_, lexeme)| lexeme.is_comment())
    {
        let is_alone = at == 0 || lexemes[at - 1].line < lexeme.line;
        match found.last_mut() {
            Some((_, last, text)) if is_alone && *last + 1 == lexeme.line => {
                *last = lexeme.line;
                text.push_str(lexeme.text);
            }
            _ => found.push((lexeme.line, lexeme.line, lexeme.text.to_owned())),
        }
    }
    found
        .into_iter()
        .map(|(line, _, text)| (line, text))
        .collect()
}

#[test]
fn no_name_stands_for_two_types() {
    let sources = sources();
    let mut places: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for source in &sources {
        for name in types(&source.code(true)) {
            let owner = if OWN.contains(&name.text) {
                source.home().0
            } else {
                ""
            };
            places
                .entry((name.text.to_owned(), owner))
                .or_default()
                .push(format!("{}:{}", source.path, name.line));
        }
    }
    assert!(places.len() > 300, "only {} types", places.len());
    places.retain(|_, places| places.len() > 1);
    let found: BTreeMap<_, _> = places
        .into_iter()
        .map(|((name, _), places)| (name, places.join(", ")))
        .collect();
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn nothing_is_public_that_nobody_outside_of_its_crate_uses() {
    let sources = sources();
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut items = Vec::new();
    let mut seen: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for source in &sources {
        let (home, uses_it) = source.home();
        let code = source.code(true);
        let user = if uses_it { "tests" } else { home };
        // A macro's code is that of whoever calls it.
        let macros = (0..code.len()).filter(|at| code[*at].text == "macro_rules");
        let bodies = macros.filter_map(|at| block(&code, at));
        let in_macros = bodies.flat_map(|(begin, end)| &code[begin..end]);
        let used = code.iter().map(|lexeme| (lexeme, user));
        for (lexeme, user) in used.chain(in_macros.map(|lexeme| (lexeme, "macros"))) {
            if lexeme.is_name() {
                users.entry(lexeme.text).or_default().insert(user);
            }
        }
        if !uses_it && PRODUCT.contains(&home) && !source.is_test() {
            let code = source.code(false);
            for name in associated(&code) {
                *seen.entry(home).or_default().entry(name).or_default() += 1;
            }
            for (name, names) in public(&code) {
                for name in names {
                    *seen.entry(home).or_default().entry(name).or_default() += 1;
                }
                items.push((home, source, name));
            }
        }
    }
    assert!(items.len() > 300, "only {} items", items.len());
    let is_used = |home: &str, name: &str| {
        users[name].iter().any(|user| *user != home)
            // Whoever gets one from a function need not name its type.
            || name.starts_with(char::is_uppercase) && seen[home].contains_key(name)
    };
    let found: BTreeMap<_, _> = items
        .into_iter()
        .filter(|(home, _, name)| !is_used(home, name.text))
        .map(|(_, source, name)| {
            (
                format!("{} {}", source.path, name.text),
                format!("line {}", name.line),
            )
        })
        .collect();
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let sources = sources();
    let (mut found, mut count) = (BTreeMap::new(), 0);
    for source in sources.iter().filter(|source| !source.is_test()) {
        let code = source.code(false);
        for (at, lexeme) in code
            .iter()
            .enumerate()
            .filter(|(_, lexeme)| lexeme.text == "fn")
        {
            let Some((_, end)) = block(&code, at).filter(|_| code[at + 1].is_name()) else {
                continue;
            };
            let lines: BTreeSet<usize> = code[at..=end]
                .iter()
                .flat_map(|lexeme| (0..lexeme.text.lines().count()).map(|more| lexeme.line + more))
                .collect();
            count += 1;
            if lines.len() > LONGEST {
                found.insert(
                    format!("{} {}", source.path, code[at + 1].text),
                    format!("{} lines, from line {}", lines.len(), lexeme.line),
                );
            }
        }
    }
    assert!(count > 1000, "only {count} functions");
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn no_comment_is_only_a_number() {
    let (mut found, mut count) = (BTreeMap::new(), 0);
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (line, comment) in comments(source) {
            count += 1;
            if is_number(&comment) {
                found.insert(format!("{} {comment}", source.path), format!("line {line}"));
            }
        }
    }
    assert!(count > 1000, "only {count} comments");
    assert_eq!(found, BTreeMap::new());
}

/// A file of the common crate.
fn source(text: &str) -> SourceFile {
    SourceFile {
        path: "common/src/lib.rs".to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn a_type_is_known_by_its_definition() {
    let text = r##"
        // struct Comment;
        struct Plain; enum Choice<'a> { A(&'a str) } pub(crate) type Alias = u8;
        trait Shape { type Assigned; } impl Shape for Plain { type Assigned = u8; }
        fn f(x: impl Fn() -> [u8; 3]) { type Local = u8; let _ = ("struct Text", r#"enum "Raw"#, '"', '\''); }
        macro_rules! m { ($name:ident) => { struct $name; } }
    "##;
    let found = source(text);
    let names: Vec<&str> = types(&found.code(true))
        .iter()
        .map(|name| name.text)
        .collect();
    assert_eq!(names, ["Plain", "Choice", "Alias", "Shape", "Local"]);
}

#[test]
fn what_is_public_is_known_with_what_others_see_of_it() {
    let text = "
        pub mod room; pub use room::Thing; pub(crate) fn inner() {}
        pub struct Open { pub field: Field } pub const fn made(of: Part) -> Whole { Hidden::new() }
        pub const LIMIT: Count = 3; pub async fn wait() {} #[cfg(test)] mod tests { pub fn helper() {} }
    ";
    let found = source(text);
    let items: Vec<(&str, Vec<&str>)> = public(&found.code(false))
        .into_iter()
        .map(|(name, names)| (name.text, names.into_iter().collect()))
        .collect();
    assert_eq!(
        items,
        [
            ("room", vec![]),
            ("Open", vec!["Field", "field", "pub"]),
            ("made", vec!["Part", "Whole", "of"]),
            ("LIMIT", vec!["Count"]),
            ("wait", vec![]),
        ]
    );
}

#[test]
fn a_comment_is_only_a_number_when_nothing_is_said_beside_it() {
    for comment in [
        "/// D-55.",
        "// Rules 15 to 17.",
        "// 10",
        "/// (rule 3, D-9)",
    ] {
        assert!(is_number(comment), "{comment}");
    }
    for comment in ["/// D-55: hold.", "// In 10 s.", "//", "/// Rules."] {
        assert!(!is_number(comment), "{comment}");
    }
    let text = "/// What it is,\n/// D-55.\nlet x = 1; // D-9\n// and more\n";
    let found = comments(&source(text));
    assert_eq!(
        found,
        [
            (1, "/// What it is,/// D-55.".to_owned()),
            (3, "// D-9// and more".to_owned())
        ]
    );
}
