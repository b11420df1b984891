use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, from_slice, json};

use super::*;

/// The objects of a list that comes in pieces of this size, and what is left of it.
fn framed(list: &[u8], size: usize) -> kube::Result<(Vec<Vec<u8>>, Vec<u8>)> {
    let (mut framer, mut objects) = (ListFramer::default(), Vec::new());
    for mut piece in list.chunks(size) {
        while let Some(object) = framer.next(&mut piece)? {
            objects.push(object.to_vec());
        }
    }
    Ok((objects, framer.end().to_vec()))
}

/// Anything, with all that could be taken for the beginning or the end of something else.
fn anything() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![r#"[\[\]{}",:\\a\n\u{e9}]{0,6}"#, Just("items".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let fields = prop::collection::btree_map(text(), inner.clone(), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_objects_of_a_list_are_found_wherever_it_is_cut(
        values in vec(anything(), 0..5),
        beside in anything(),
        size in 1_usize..200,
        is_pretty in any::<bool>(),
    ) {
        let objects: Vec<Value> = values.into_iter().map(|value| json!({"items": [value]})).collect();
        let list = |items: &[Value]| json!({"a": beside, "items": items, "z": beside, "zz": "items"});
        let text = if is_pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
        let (found, rest) = framed(&text(&list(&objects)).unwrap(), size).unwrap();
        let found: Vec<Value> = found.iter().map(|object| from_slice(object).unwrap()).collect();
        prop_assert_eq!(found, objects);
        prop_assert_eq!(from_slice::<Value>(&rest).unwrap(), list(&[]));
    }

    #[test]
    fn whatever_comes_is_framed_or_refused(bytes in vec(any::<u8>(), 0..200), size in 1_usize..50) {
        let list = [b"{\"items\":[".as_slice(), &bytes].concat();
        let _ = (framed(&bytes, size), framed(&list, size));
    }
}

#[test]
fn only_objects_can_be_listed() {
    for item in ["null", "8", "[]", "\"a\"", "true"] {
        let list = format!(r#"{{"items": [{{}}, {item}]}}"#);
        let error = framed(list.as_bytes(), 7).expect_err(item).to_string();
        assert!(error.contains("something else than objects"), "{error}");
    }
}

#[test]
fn an_object_or_a_list_that_does_not_end_is_given_up() {
    let endless = |beginning: &str| {
        let list = beginning.to_owned() + &"x".repeat(MAX_OBJECT + 1);
        framed(list.as_bytes(), 1 << 16)
            .expect_err("an error")
            .to_string()
    };
    let error = endless(r#"{"items": [{"a": ""#);
    assert!(error.contains("longer than 32 MiB"), "{error}");
    let error = endless(r#"{"kind": ""#);
    assert!(error.contains("too long beside"), "{error}");
}
