//! YAML as a tree of texts with their lines. A scalar is what is written, whatever it looks like: a
//! name may be `7`, a password `1e3`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub(super) struct Node {
    pub line: u64,
    value: NodeValue,
}

#[derive(Clone)]
enum NodeValue {
    Null,
    /// A scalar that stands in quotes, or could be nothing but a text.
    Text(String),
    /// Another one, as written.
    Plain(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key that is set.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let NodeValue::Map(entries) = &self.value else {
            return None;
        };
        let (_, node) = entries.iter().find(|(name, _)| name == key)?;
        Some(node).filter(|node| !matches!(node.value, NodeValue::Null))
    }

    pub(super) fn items(&self) -> Option<&[Self]> {
        match &self.value {
            NodeValue::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) | NodeValue::Plain(text) => Some(text),
            _ => None,
        }
    }

    /// The value for derived types: only `true` and `false` are no texts, in the spellings of YAML.
    pub(super) fn json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Plain(text) if ["true", "True", "TRUE"].contains(&text.as_str()) => {
                Value::Bool(true)
            }
            NodeValue::Plain(text) if ["false", "False", "FALSE"].contains(&text.as_str()) => {
                Value::Bool(false)
            }
            NodeValue::Text(text) | NodeValue::Plain(text) => Value::String(text.clone()),
            NodeValue::List(items) => items.iter().map(Self::json).collect(),
            NodeValue::Map(entries) => {
                let entries = entries.iter();
                entries
                    .map(|(key, node)| (key.clone(), node.json()))
                    .collect()
            }
        }
    }
}

/// Reads all documents. The error is a line and what is wrong there: the parser's message could
/// quote it.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Node>, (Option<u64>, &'static str)> {
    let text = decode(bytes).ok_or((None, "is not UTF-8 text"))?;
    let options = serde_saphyr::options! {
        // As kubectl takes them.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let documents: Vec<Spanned<Tree>> = serde_saphyr::from_multiple_with_options(&text, options)
        .map_err(|error| {
            let line = error.location().map(|location| location.line());
            (line, "is not YAML, or larger than any kubeconfig")
        })?;
    let documents = documents.into_iter().map(|tree| node(tree, &text));
    let documents = documents.filter(|node| !matches!(node.value, NodeValue::Null));
    documents
        .map(|node| match node.value {
            NodeValue::Map(_) => Ok(node),
            _ => Err((Some(node.line), "is a text or a list, not a kubeconfig")),
        })
        .collect()
}

/// A text in UTF-8, or in UTF-16 as PowerShell writes it.
fn decode(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<_, _>>().ok()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// A value as the parser gives it.
enum Tree {
    Null,
    Text(String),
    /// A number or a boolean.
    Plain,
    List(Vec<Spanned<Tree>>),
    Map(Vec<(String, Spanned<Tree>)>),
}

fn node(tree: Spanned<Tree>, text: &str) -> Node {
    let written = || {
        let span = tree.defined.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        Some(text.get(start..start + length)?.trim().to_owned())
    };
    Node {
        line: tree.referenced.line(),
        value: match tree.value {
            Tree::Null => NodeValue::Null,
            Tree::Text(text) => NodeValue::Text(text),
            Tree::Plain => NodeValue::Plain(written().unwrap_or_default()),
            Tree::List(items) => {
                NodeValue::List(items.into_iter().map(|item| node(item, text)).collect())
            }
            Tree::Map(entries) => {
                let entries = entries.into_iter();
                NodeValue::Map(entries.map(|(key, item)| (key, node(item, text))).collect())
            }
        },
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Plain)
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}
