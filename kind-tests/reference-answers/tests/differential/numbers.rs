//! `strconv.Atoi` for the memory of replicas, `strconv.ParseBool` for ignore-scaling (D-32, D-33, rule 67).

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use prober::core::replicas::{IGNORE_SCALING, Marks, Observed, REPLICAS, scale_up};
use prober::core::verdict::Scope;
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::json;

fn marks(key: &str, value: &str) -> Marks {
    Marks::of(Some(&BTreeMap::from([(key.to_owned(), value.to_owned())])))
}

#[test]
fn remembered_replicas_are_what_atoi_reads_or_one() -> Result<()> {
    let near = any::<i32>().prop_map(|near| format!("{}", i64::from(i32::MAX) + i64::from(near % 3)));
    let numbers = prop_oneof![
        4 => any::<i32>().prop_map(|number| number.to_string()),
        4 => "[-+]?[0-9]{1,12}",
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => near,
        2 => "[-+ _.0-9xobe]{0,8}",
        1 => "\\PC{0,4}",
    ];
    campaign(
        4_000,
        numbers,
        |text| json!({"integer": text}),
        |text, go| {
            let go = go.ok().and_then(|number| number.as_i64());
            let expected = go.and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 1);
            let write = scale_up(&Observed { marks: marks(REPLICAS, text), ..Observed::default() }, Scope::All, false);
            let ours = write.map(|write| (write.replicas, write.fell_back));
            ensure!(ours == Some((Some(expected.unwrap_or(1)), expected.is_none())), "Go: {go:?}, we: {ours:?}");
            Ok(())
        },
    )
}

#[test]
fn ignore_scaling_is_true_where_parse_bool_says_so() -> Result<()> {
    let words =
        prop_oneof!["(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False|tRUE|yes|on| true|true |)", "[tTrRuUeE1]{0,4}", "\\PC{0,4}",];
    campaign(
        4_000,
        words,
        |text| json!({"boolean": text}),
        |text, go| {
            let go = go.is_ok_and(|value| value == json!(true));
            let ours = marks(IGNORE_SCALING, text).ignored;
            ensure!(go == ours, "Go: {go}, we: {ours}");
            Ok(())
        },
    )
}
