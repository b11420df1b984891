//! Pages and the chart say what the program reads: its flags, and its keys with their defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::CommandFactory;
use common::document::{Loaded, Problems};
use common::flags::AgentArgs;
use prober_core::config::{Config, Dependent, OwnerCheck, ScaleInfo};
use serde_json::{Value, json};

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).expect("a text")
}

/// The rows of the first table after a text, and of each the first cell and the one of this number.
fn table(page: &str, after: &str, cell: usize) -> (Vec<String>, BTreeMap<String, String>) {
    let page = file(page);
    let (_, rest) = page.split_once(after).expect(after);
    let rows = rest.lines().skip_while(|line| !line.starts_with("| `"));
    let rows: Vec<_> = rows.take_while(|line| !line.is_empty()).collect();
    let cells = rows.iter().map(|row| {
        let cells: Vec<_> = row
            .split('|')
            .skip(1)
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        (cells[0].to_owned(), cells[cell].to_owned())
    });
    let cells = cells.collect();
    (rows.into_iter().map(str::to_owned).collect(), cells)
}

#[test]
fn the_table_of_flags_is_that_of_the_program() {
    let (mut rows, mut known) = (Vec::new(), BTreeSet::new());
    for flag in AgentArgs::command().get_opts() {
        let takes = if flag.is_require_equals_set() {
            "true or false; alone: true"
        } else {
            flag.get_value_names().expect("one")[0].as_str()
        };
        let default = match flag.get_default_values() {
            [default] => default.display().to_string(),
            _ => String::new(),
        };
        let aliases = flag.get_visible_aliases().unwrap_or_default();
        let names = flag.get_long().into_iter().chain(aliases);
        let names: Vec<_> = names.map(|name| format!("--{name}")).collect();
        let help = flag.get_help().expect("a text");
        let row = format!(
            "| `{}` | {takes} | `{default}` | {help}. |",
            names.join("`, `")
        );
        rows.push(row.replace("``", ""));
        known.extend(names);
    }
    assert_eq!(table("docs/configure.md", "program: flags -->", 0).0, rows);
    let (_, differ) = table("docs/swap-image.md", "## Flags", 0);
    assert!(differ.keys().all(|flag| known.contains(flag)), "{differ:?}");
}

/// A config of nothing but defaults.
fn defaults<T: serde::de::DeserializeOwned>() -> T {
    serde_json::from_str("{}").expect("every key has a default")
}

/// Every key of the prober's file, with its default.
fn probers_keys() -> Value {
    let mut config = json!(defaults::<Config>());
    config["ownerCheck"] = json!(OwnerCheck::default());
    config["dependentResourceInfos"] = json!([defaults::<Dependent>()]);
    config
}

/// Every key of the weeder's file, with its default or one that is required.
fn weeders_keys() -> Value {
    let selector = "{matchExpressions: [{key: a, operator: Exists}]}";
    let file = format!("servicesAndDependantSelectors: {{a: {{podSelectors: [{selector}]}}}}");
    json!(weeder::config::parse(&file).expect("a config").config)
}

/// Last parts of the paths of what a file of defaults is refused for.
fn required<T>(files: &[&str], parse: fn(&str) -> Result<Loaded<T>, Problems>) -> BTreeSet<String> {
    let problems = files.iter().filter_map(|file| parse(file).err()).flatten();
    let key = |problem: String| Some(problem.split_once(": ")?.0.rsplit('.').next()?.to_owned());
    problems.filter_map(key).collect()
}

/// Checks that a table has the keys and defaults of an object of a file, whose lists and objects are
/// empty by default.
fn is_documented(of: &str, object: &Value, required: &BTreeSet<String>) {
    let object = object.as_object().expect("an object");
    let shown = object.iter().map(|(key, default)| {
        let default = match default {
            _ if required.contains(key) => "required".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(_) => "[]".to_owned(),
            Value::Object(_) => "{}".to_owned(),
            other => other.to_string(),
        };
        (key.clone(), default)
    });
    let documented = table("docs/configure.md", &format!("<!-- keys: {of} -->"), 2).1;
    assert_eq!(documented, shown.collect(), "{of}");
}

#[test]
fn keys_and_defaults_of_the_page_are_those_in_force() {
    let nested = "ownerCheck: {}\ndependentResourceInfos: [{}]";
    let mut probers = required(&["{}", nested], prober::config::parse);
    probers.extend(["apiVersion", "kind", "name"].map(str::to_owned));
    let every_key = probers_keys();
    let dependent = &every_key["dependentResourceInfos"][0];
    for (of, object) in [
        ("prober", &json!(defaults::<Config>())),
        ("prober ownerCheck", &every_key["ownerCheck"]),
        ("prober dependentResourceInfos", dependent),
        ("prober ref", &dependent["ref"]),
        ("prober scale", &json!(defaults::<ScaleInfo>())),
    ] {
        is_documented(of, object, &probers);
    }

    let nested = "servicesAndDependantSelectors: {a: {}}";
    let mut weeders = required(&["{}", nested], weeder::config::parse);
    weeders.extend(["key", "operator"].map(str::to_owned));
    let every_key = weeders_keys();
    let service = &every_key["servicesAndDependantSelectors"]["a"];
    let selector = &service["podSelectors"][0];
    for (of, object) in [
        ("weeder", &every_key),
        ("weeder service", service),
        ("weeder selector", selector),
        ("weeder expression", &selector["matchExpressions"][0]),
    ] {
        is_documented(of, object, &weeders);
    }
}

#[test]
fn page_and_chart_know_every_key() {
    let schema = file("deploy/helm/dependency-watchdog/values.schema.json");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let keys = |object: &Value| -> BTreeSet<String> {
        object
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let prober = keys(&probers_keys());
    let weeder = keys(&weeders_keys());
    for (agent, read) in [("prober", &prober), ("weeder", &weeder)] {
        let config = &schema["properties"][agent]["properties"]["config"]["properties"];
        assert_eq!(keys(config), *read, "the chart");
    }
    let (_, differ) = table("docs/swap-image.md", "## Config keys", 0);
    let is_read = |key: &String| prober.contains(key) || weeder.contains(key);
    assert!(differ.keys().all(is_read), "{differ:?}");
}
