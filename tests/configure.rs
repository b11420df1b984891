//! docs/configure.md says what the program reads: its keys with their defaults, and its flags, whose
//! table `UPDATE_DOCS=1 cargo test --test configure` writes again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use clap::CommandFactory;
use common::document::{ConfigError, FieldError, Loaded};
use common::flags::AgentArgs;
use prober_core::config::Config;
use serde_json::{Value, json};
use weeder::config::file::File;

const PAGE: &str = "docs/configure.md";

fn flag_table() -> String {
    let mut table = String::from("| Flag | Takes | Default | Meaning |\n|---|---|---|---|\n");
    for flag in AgentArgs::command().get_opts() {
        let takes = if flag.is_require_equals_set() {
            "true or false; alone: true"
        } else {
            flag.get_value_names().expect("one")[0].as_str()
        };
        let default = match flag.get_default_values() {
            [default] if !default.is_empty() => format!("`{}`", default.display()),
            _ => String::new(),
        };
        let aliases = flag.get_visible_aliases().unwrap_or_default();
        let names = flag.get_long().into_iter().chain(aliases);
        let names = names
            .map(|name| format!("`--{name}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let help = flag.get_help().expect("a text");
        let _ = writeln!(table, "| {names} | {takes} | {default} | {help}. |");
    }
    table
}

#[test]
fn the_table_of_flags_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let (begin, end) = ("<!-- made of the program: flags -->\n", "<!-- end -->");
    let (before, rest) = page.split_once(begin).expect("a begin");
    let (_, after) = rest.split_once(end).expect("an end");
    let made = format!("{before}{begin}\n{}\n{end}{after}", flag_table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, made).expect("written");
    } else {
        assert!(
            page == made,
            "{PAGE} is not what the program reads: UPDATE_DOCS=1 cargo test --test configure"
        );
    }
}

/// Keys and defaults of a table of the page; of what is required there is none.
fn keys(page: &str, table: &str) -> BTreeMap<String, String> {
    let (_, rest) = page
        .split_once(&format!("<!-- keys: {table} -->"))
        .expect(table);
    let (table, _) = rest.split_once("<!-- end -->").expect("an end");
    let cells = table.lines().map(|row| row.split(" | ").collect());
    let rows = cells.filter_map(|cells: Vec<&str>| {
        let key = cells.first()?.strip_prefix("| `")?.trim_end_matches('`');
        Some((key.to_owned(), cells.get(2)?.trim_matches('`').to_owned()))
    });
    rows.collect()
}

/// Last parts of the paths of what is missing in these files.
fn missing<T>(
    files: &[&str],
    parse: fn(&str) -> Result<Loaded<T>, ConfigError>,
) -> BTreeSet<String> {
    let errors = files.iter().filter_map(|file| parse(file).err());
    let fields = errors.flat_map(|error| error.fields().to_vec());
    let key = |error: FieldError| error.field.rsplit('.').next().map(str::to_owned);
    fields.filter_map(key).collect()
}

/// Checks that a table has the keys and defaults of an object of a file.
fn is_documented(page: &str, table: &str, object: &Value, required: &BTreeSet<String>) {
    let object = object.as_object().expect("an object");
    let shown = object.iter().map(|(key, default)| {
        let default = match default {
            _ if required.contains(key) => "required".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (key.clone(), default)
    });
    assert_eq!(keys(page, table), shown.collect(), "{PAGE}: {table}");
}

/// An object with nothing in its lists and objects.
fn emptied(object: &Value) -> Value {
    let fields = object.as_object().expect("an object").iter();
    let emptied = fields.map(|(key, value)| {
        let value = match value {
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            scalar => scalar.clone(),
        };
        (key.clone(), value)
    });
    emptied.collect()
}

#[test]
fn keys_and_defaults_of_the_page_are_those_in_force() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let is_documented =
        |table: &str, object: &Value, required| is_documented(&page, table, object, required);

    let files = [
        "",
        "ownerCheck: {}\ndependentResourceInfos: [{}, {ref: {}}]",
    ];
    let required = missing(&files, prober::config::parse);
    let every_key = prober::config::to_json(&prober::config::every_key());
    let dependent = &every_key["dependentResourceInfos"][0];
    for (table, object) in [
        ("prober", &prober::config::to_json(&Config::default())),
        ("prober ownerCheck", &every_key["ownerCheck"]),
        ("prober dependentResourceInfos", dependent),
        ("prober ref", &dependent["ref"]),
        ("prober scale", &dependent["scaleUp"]),
        ("prober scale", &dependent["scaleDown"]),
    ] {
        is_documented(table, object, &required);
    }

    let files = [
        "",
        "servicesAndDependantSelectors: {a: {}, b: {podSelectors: [{matchExpressions: [{}]}]}}",
    ];
    let required = missing(&files, weeder::config::parse);
    let every_key = serde_json::to_value(File::every_key()).expect("an object");
    let service = &every_key["servicesAndDependantSelectors"][""];
    let selector = &service["podSelectors"][0];
    for (table, object) in [
        ("weeder", &every_key),
        ("weeder service", service),
        ("weeder selector", selector),
        ("weeder expression", &selector["matchExpressions"][0]),
    ] {
        is_documented(table, &emptied(object), &required);
    }
}
