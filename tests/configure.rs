//! docs/configure.md says what the program reads: its tables are made of the program's own.
//! `UPDATE_DOCS=1 cargo test --test configure` writes them again.

use std::fmt::Write;
use std::path::Path;

use clap::CommandFactory;
use common::document::ConfigKey;
use common::flags::AgentArgs;
use prober::config::keys as prober;
use serde_json::Value;
use weeder::config::keys as weeder;

const PAGE: &str = "docs/configure.md";

fn keys(keys: &[ConfigKey]) -> String {
    let mut table = String::from("| Key | Takes | Default | Meaning |\n|---|---|---|---|\n");
    for ConfigKey {
        name,
        takes,
        default,
        meaning,
    } in keys
    {
        let default = if default.is_empty() {
            "required".to_owned()
        } else {
            format!("`{default}`")
        };
        let _ = writeln!(table, "| `{name}` | {takes} | {default} | {meaning} |");
    }
    table
}

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
fn the_tables_of_the_page_are_those_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let mut made = page.clone();
    for (name, table) in [
        ("prober", keys(prober::ROOT)),
        ("prober ownerCheck", keys(prober::OWNER_CHECK)),
        ("prober dependentResourceInfos", keys(prober::DEPENDENT)),
        ("prober ref", keys(prober::REF)),
        ("prober scale", keys(prober::SCALE)),
        ("weeder", keys(weeder::ROOT)),
        ("weeder service", keys(weeder::SERVICE)),
        ("weeder selector", keys(weeder::SELECTOR)),
        ("weeder expression", keys(weeder::EXPRESSION)),
        ("flags", flag_table()),
    ] {
        let (begin, end) = (
            format!("<!-- made of the program: {name} -->\n"),
            "<!-- end -->",
        );
        let (before, rest) = made
            .split_once(&begin)
            .unwrap_or_else(|| panic!("{PAGE} has no {begin}"));
        let (_, after) = rest.split_once(end).expect("an end");
        made = format!("{before}{begin}\n{table}\n{end}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, made).expect("written");
    } else {
        assert!(
            page == made,
            "{PAGE} is not what the program reads: UPDATE_DOCS=1 cargo test --test configure"
        );
    }
}

#[test]
fn the_defaults_in_the_tables_are_those_in_force() {
    let minimal = "kubeConfigSecretName: s\ndependentResourceInfos:\n\
                   - {ref: {apiVersion: apps/v1, kind: Deployment, name: d}, scaleUp: {}, scaleDown: {}}\n";
    let owner = "ownerCheck: {name: o, value: v}\n";
    let owner = ::prober::config::to_json(
        &::prober::config::parse(&format!("{minimal}{owner}"))
            .expect("a check")
            .config,
    );
    let config = ::prober::config::to_json(
        &::prober::config::parse(minimal)
            .expect("the least there may be")
            .config,
    );
    let dependent = &config["dependentResourceInfos"][0];
    for (object, keys) in [
        (&config, prober::ROOT),
        (&owner["ownerCheck"], prober::OWNER_CHECK),
        (dependent, prober::DEPENDENT),
        (&dependent["scaleUp"], prober::SCALE),
    ] {
        assert_eq!(
            object.as_object().expect("an object").len(),
            keys.len(),
            "{object}"
        );
        for ConfigKey { name, default, .. } in keys.iter().filter(|key| !key.default.is_empty()) {
            let shown = match &object[name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(&shown, default, "{name}");
        }
    }
    let minimal = "servicesAndDependantSelectors: {etcd: {podSelectors: [{}]}}";
    let config = ::weeder::config::to_json(
        &::weeder::config::parse(minimal)
            .expect("the least there may be")
            .config,
    );
    assert_eq!(
        (&config["watchDuration"], &config["maxDeletionsPerOwner"]),
        (&weeder::ROOT[0].default.into(), &Value::Null)
    );
}
