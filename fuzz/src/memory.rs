//! Replica memory: whatever stands in the annotations, replicas are never lost and 0 is never remembered (D-29 to D-33).

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use prober::core::replicas::{
    IGNORE_SCALING, MELTDOWN_PROTECTION_ACTIVE, Mark, Marks, Observed, REPLICAS, Write, scale_down, scale_up,
};
use prober::core::verdict::Scope;

/// A resource with any annotations.
#[derive(Arbitrary, Debug)]
pub struct Resource {
    replicas: u16,
    memory: Option<String>,
    marker: Option<String>,
    ignore: Option<String>,
    only_held_down: bool,
    is_scope_small: bool,
}

/// Down and up again gives what there was, from any start; doing either twice does nothing more.
pub fn check(resource: &Resource) {
    let annotations =
        [(REPLICAS, &resource.memory), (MELTDOWN_PROTECTION_ACTIVE, &resource.marker), (IGNORE_SCALING, &resource.ignore)];
    let mut annotations: BTreeMap<String, String> =
        annotations.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))).collect();
    let mut replicas = i32::from(resource.replicas);
    let (before, marked) = (replicas, resource.marker.is_some());
    let remembered =
        resource.memory.as_deref().and_then(|text| text.parse::<i64>().ok()).filter(|n| (1..=0x7fff_ffff).contains(n));
    let ignored = matches!(resource.ignore.as_deref(), Some("1" | "t" | "T" | "true" | "TRUE" | "True"));
    let observe = |replicas: i32, annotations: &BTreeMap<String, String>| Observed {
        replicas,
        marks: Marks::of(Some(annotations)),
        ..Observed::default()
    };

    let down = scale_down(&observe(replicas, &annotations));
    apply(down.as_ref(), &mut replicas, &mut annotations);
    assert_eq!(scale_down(&observe(replicas, &annotations)), None, "twice is once");
    if ignored {
        assert_eq!((replicas, annotations.get(REPLICAS)), (before, resource.memory.as_ref()), "hands off");
        return;
    }
    assert_eq!(replicas, 0);
    let kept = annotations.get(REPLICAS);
    assert!(before == 0 || kept.is_some_and(|text| text.parse::<i32>().is_ok_and(|count| count > 0)), "{kept:?} is remembered");
    if marked && remembered.is_some() {
        assert_eq!(kept, resource.memory.as_ref(), "what is remembered while held down stays");
    }

    let scope = if resource.is_scope_small { Scope::HeldDown } else { Scope::All };
    let up = scale_up(&observe(replicas, &annotations), scope, resource.only_held_down);
    let held_down = annotations.contains_key(MELTDOWN_PROTECTION_ACTIVE);
    apply(up.as_ref(), &mut replicas, &mut annotations);
    if !held_down && (resource.only_held_down || resource.is_scope_small) {
        return assert_eq!(up, None);
    }
    let expected = match remembered {
        // It was above 0 and not held down: what there was counts, not an old memory.
        _ if before > 0 && !marked => i64::from(before),
        Some(remembered) => remembered,
        None if before > 0 => i64::from(before),
        None => 1,
    };
    assert_eq!(i64::from(replicas), expected);
    assert!(
        !annotations.contains_key(REPLICAS) && !annotations.contains_key(MELTDOWN_PROTECTION_ACTIVE),
        "nothing is left behind"
    );
    assert_eq!(scale_up(&observe(replicas, &annotations), Scope::All, false), None, "twice is once");
}

fn apply(write: Option<&Write>, replicas: &mut i32, annotations: &mut BTreeMap<String, String>) {
    let Some(write) = write else { return };
    *replicas = write.replicas.unwrap_or(*replicas);
    for (key, mark) in [(REPLICAS, &write.memory), (MELTDOWN_PROTECTION_ACTIVE, &write.marker)] {
        match mark {
            Some(Mark::Set(value)) => drop(annotations.insert(key.to_owned(), value.clone())),
            Some(Mark::Remove) => drop(annotations.remove(key)),
            None => {}
        }
    }
}
