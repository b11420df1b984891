//! `time.ParseDuration` and `Duration.String` (rule 21).

use anyhow::{Result, ensure};
use common::go_compat::duration::GoDuration;
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::json;

/// Durations as people write them, with their numbers at every limit, and near misses.
pub fn durations() -> impl Strategy<Value = String> {
    let digits = prop_oneof![
        8 => "[0-9]{1,3}",
        2 => "[0-9]{0,24}",
        2 => prop::sample::select(vec!["9223372036854775807", "9223372036854775808", "9223372036854775809", "2562047", "2562048",
            "153722867280", "922337203685477580", "0", "00", "18446744073709551616"]).prop_map(str::to_owned),
    ];
    let unit = prop_oneof![
        20 => prop::sample::select(vec!["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["", "d", "w", "S", "H", "sec", "n", " s", "µ"]).prop_map(str::to_owned),
    ];
    let fraction = prop_oneof![6 => Just(String::new()), 3 => "\\.[0-9]{0,4}", 2 => "\\.[0-9]{0,30}"];
    let part = (digits, fraction, unit).prop_map(|(digits, fraction, unit)| format!("{digits}{fraction}{unit}"));
    let whole = ("[-+]?", prop::collection::vec(part, 1..5)).prop_map(|(sign, parts)| format!("{sign}{}", parts.concat()));
    let odd = (whole.clone(), any::<prop::sample::Index>(), "[-+.0-9smhnuµ\u{3bc} _e]").prop_map(|(mut text, at, inserted)| {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        if !places.is_empty() {
            text.insert_str(*at.get(&places), &inserted);
        }
        text
    });
    prop_oneof![6 => whole, 2 => odd, 1 => "[-+.0-9smhnu]{0,8}", 1 => "\\PC{0,6}"]
}

#[test]
fn durations_are_read_and_written_as_go_does() -> Result<()> {
    campaign(
        10_000,
        durations(),
        |text| json!({"duration": text}),
        |text, go| match (go, text.parse::<GoDuration>()) {
            (Ok(go), Ok(ours)) => {
                ensure!(go["nanos"] == json!(ours.as_nanos()), "Go reads {}, we {}", go["nanos"], ours.as_nanos());
                ensure!(go["written"] == json!(ours.to_string()), "Go writes {}, we {ours}", go["written"]);
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
            (go, ours) => anyhow::bail!("Go: {go:?}, we: {ours:?}"),
        },
    )
}
