use super::*;
use crate::tests::scene::table;

fn refusal(name: &str) -> Refusal {
    let said = String::new;
    match name {
        "timeout" => Refusal::Timeout,
        "no answer" => Refusal::NoAnswer(said()),
        "503" => Refusal::Unavailable {
            code: 503,
            said: said(),
        },
        "403" => Refusal::Denied {
            code: 403,
            said: said(),
        },
        "429" => Refusal::Throttled(None),
        "unverified" => Refusal::Unverified(said()),
        after => {
            let seconds = after.strip_prefix("429 after ").expect(after);
            let seconds = seconds.parse().expect(after);
            Refusal::Throttled(Some(Duration::from_secs_f64(seconds)))
        }
    }
}

#[test]
fn waits_grow_with_the_failures() {
    // After the 1st to 4th, the 5th, the 6th and the 20th failure: in the first 10 s of an outage, later
    // in it, and in a restore.
    for [name, urgent, down, up] in table(
        "
        403 | 0.1 0.1 1 1 1 1 1 | 0.1 0.1 1 2 4 5 5 | 0.1 0.1 1 2 4 8 300
        timeout | 0.1 0.1 1 1 1 1 1 | 0.1 0.1 1 2 4 5 5 | 0.1 0.1 1 2 4 8 15
        no answer | 0.1 0.1 1 1 1 1 1 | 0.1 0.1 1 2 4 5 5 | 0.1 0.1 1 2 4 8 15
        503 | 0.1 0.1 1 1 1 1 1 | 0.1 0.1 1 2 4 5 5 | 0.1 0.1 1 2 4 8 15
        429 | 0.1 0.1 1 1 1 1 1 | 0.1 0.1 1 2 4 5 5 | 0.1 0.1 1 2 4 8 15
        429 after 0.4 | 0.4 0.4 1 1 1 1 1 | 0.4 0.4 1 2 4 5 5 | 0.4 0.4 1 2 4 8 15
        429 after 30 | 1 1 1 1 1 1 1 | 1 1 1 2 4 5 5 | 1 1 1 2 4 8 15
        unverified | 1 1 1 1 1 1 1 | 1 1 1 1 1 1 1 | 1 1 1 1 1 1 1
        ",
    ) {
        for (direction, is_urgent, expected) in [
            (Direction::Down, true, urgent),
            (Direction::Down, false, down),
            (Direction::Up, false, up),
        ] {
            let wait = |failures| refusal(name).wait(direction, failures, is_urgent);
            let waits = [1, 2, 3, 4, 5, 6, 20].map(|failures| wait(failures).as_seconds_f64());
            let waits = waits.map(|seconds| seconds.to_string()).join(" ");
            assert_eq!(waits, expected, "{name}, {direction:?}");
        }
    }
}
