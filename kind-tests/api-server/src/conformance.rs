//! One table of requests and what a Kubernetes API server answers. It is played against
//! [`crate::MemoryApi`] and against a kube-apiserver, so that the one stays like the other in what
//! clients read.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Response, header};
use serde_json::{Value, json};

use crate::Resource;
use crate::objects::MERGE_PATCH;
use crate::reply::JSON;

/// A user with all rights, whose lists of ConfigMaps API priority and fairness rejects.
pub const REJECTED: &str = "rejected";

/// The custom resource that the server is to have, with any spec and status.
pub fn widgets() -> Resource {
    Resource::custom("example.org/v1", "widgets", "Widget")
}

/// What `$name`s stand for.
type Names = BTreeMap<String, String>;

/// The status of an answer, with its Retry-After, and its body.
type Answer = (String, Value);

/// Plays the table against a server that has no objects of the namespaces `conformance` yet. `send`
/// sends a request as an administrator, or as another user: anybody but [`REJECTED`] may do nothing.
/// `compact` forgets all versions of objects but the newest.
///
/// # Errors
/// When the server cannot be reached, or answers otherwise; then all differences are named.
pub async fn play(
    send: impl AsyncFn(Option<&str>, Request<Vec<u8>>) -> Result<Response<Bytes>>,
    compact: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let (mut known, mut differences) = (Names::new(), Vec::new());
    let mut asked = (String::new(), Answer::default());
    for line in include_str!("conformance/table.txt").lines() {
        // The longest name first, as it may begin with another one.
        let names = known.iter().rev();
        let line = names.fold(line.to_owned(), |line, (name, text)| {
            line.replace(name, text)
        });
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("", "") | ("#", _) => {}
            ("", expected) => {
                let (request, answer) = &asked;
                if let Err(difference) = compare(expected.trim_start(), answer, &mut known) {
                    differences.push(format!("{request}: {difference}"));
                }
            }
            ("let", named) => {
                let (name, text) = named.split_once(" = ").context("a name")?;
                known.insert(name.to_owned(), text.to_owned());
            }
            ("COMPACT", _) => compact().await?,
            _ => {
                let (user, request) = read_request(&line)?;
                let answer = read_answer(&line, &send(user, request).await?)?;
                asked = (line, answer);
            }
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Reads `METHOD PATH [by USER] [as MEDIA_TYPE] [BODY]`: the user, and the request.
fn read_request(line: &str) -> Result<(Option<&str>, Request<Vec<u8>>)> {
    let (head, body) = line.split_at(line.find(['{', '[']).unwrap_or(line.len()));
    let mut words = head.split_whitespace();
    let (method, path) = words.next().zip(words.next()).context("a request")?;
    let (user, media_type) = match (words.next(), words.next()) {
        (Some("by"), user) => (user, JSON),
        (Some("as"), Some(media_type)) => (None, media_type),
        _ if method == "PATCH" => (None, MERGE_PATCH),
        _ => (None, JSON),
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, media_type);
    Ok((user, request.body(body.into())?))
}

/// Reads what is answered to a line: of a watch the body is a list of its lines.
fn read_answer(line: &str, answer: &Response<Bytes>) -> Result<Answer> {
    let mut status = answer.status().as_u16().to_string();
    if let Some(seconds) = answer.headers().get(header::RETRY_AFTER) {
        status += &format!(", again in {} s", seconds.to_str()?);
    }
    let text = str::from_utf8(answer.body())?;
    let read = |text| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    let body = match line.contains("watch=true") {
        true => text.lines().map(read).collect(),
        false => read(text),
    };
    Ok((status, body))
}

/// Compares an answer with a line of what is expected.
fn compare(line: &str, (status, body): &Answer, known: &mut Names) -> Result<(), String> {
    let (expected_status, expected) = line.split_once(": ").unwrap_or((line, "{}"));
    if status != expected_status {
        return Err(format!("{status}, not {expected_status}: {body}"));
    }
    let expected = serde_json::from_str(expected).unwrap_or_else(|_| {
        let (reason, message) = expected.split_once(": ").unwrap_or((expected, ""));
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status.parse::<u16>().ok(),
            "reason": reason, "message": message})
    });
    check(&expected, body, known, "")
}

/// The first difference between a part of an answer and what is expected there.
fn check(expected: &Value, found: &Value, known: &mut Names, place: &str) -> Result<(), String> {
    let is_as_expected = match (expected, found) {
        (Value::Object(fields), Value::Object(_) | Value::Null) => {
            return fields.iter().try_for_each(|(key, field)| {
                check(field, &found[key], known, &format!("{place}.{key}"))
            });
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            return pairs.try_for_each(|(at, (item, other))| {
                check(item, other, known, &format!("{place}[{at}]"))
            });
        }
        (Value::String(name), Value::String(text)) if name.starts_with('$') => {
            known.entry(name.clone()).or_insert(text.clone()) == text
        }
        (Value::String(expected), Value::String(text)) => {
            let is_prose = place.is_empty() || place.ends_with(".message");
            text == expected || is_prose && text.contains(expected)
        }
        _ => expected == found,
    };
    match is_as_expected {
        true => Ok(()),
        false => Err(format!("{place} is {found}, not {expected}")),
    }
}
