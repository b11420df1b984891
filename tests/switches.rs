//! The switches by which `make rent` measures the core's rules still fit the core.

use std::fs;
use std::path::Path;

/// Code without its white space, so that it does not matter how lines are broken.
fn compact(code: &str) -> String {
    code.split_whitespace().collect()
}

#[test]
fn every_switch_fits_the_core_exactly_once() {
    let prober = Path::new(env!("CARGO_MANIFEST_DIR")).join("prober");
    let table = fs::read_to_string(prober.join("rent/switches")).expect("the switches");
    let mut wrong = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split(" | ").collect();
        let [name, _, file, before, after] = fields[..] else {
            panic!("not five fields between bars: {line}");
        };
        let code = fs::read_to_string(prober.join("core/src").join(file)).expect(file);
        let found = compact(&code).matches(&compact(before)).count();
        if found != 1 || !after.contains("OFF") {
            wrong.push(format!("{name}: found {found} times in {file}: {before}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "A rule's code has changed, so `make rent` cannot switch it off. In prober/rent/switches say \
         what is there now and what takes its place, or delete the line of a rule that is gone: {wrong:#?}"
    );
}
