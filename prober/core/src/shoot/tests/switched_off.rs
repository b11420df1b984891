//! Reasons to wait that no random life misses: without each, something else comes of a story.

use super::*;

#[test]
fn order_and_brake_are_needed() {
    for [reason, story, with, without] in table(
        "
        order | outage, pods linger; 10 | 0 mcm 0, 5 kcm 0 | 0 mcm 0, 0 kcm 0
        undone | outage, mcm alone; 7 to 12 by 0.5 mcm running; 12 | mcm from 1: 7 0, 8 0, 9 0 | mcm from 1: 7 0, 8 0, 9 0, 10 0, 11 0, 12 0
        ",
    ) {
        let comes = || {
            let (begins, events) = story.split_once("; ").expect(story);
            begin(begins).then(events).comes_to(with)
        };
        assert_eq!(comes(), with, "{reason}");
        let mut reasons = Reason::VARIANTS.iter().copied();
        SWITCHED_OFF.set(reasons.find(|known| known.into_str() == reason));
        assert_eq!(comes(), without, "{reason}");
        SWITCHED_OFF.set(None);
    }
}
