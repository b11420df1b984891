use std::future::ready;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, duplex, repeat};
use tower::service_fn;

use super::*;

#[tokio::test]
async fn a_connection_breaks_when_too_much_comes_before_an_answer() {
    for (code, breaks) in [(200, true), (101, false)] {
        let (ours, mut theirs) = duplex(2048);
        let mut connection = HeadLimited::new(ours);
        let answer = Response::builder().status(code);
        let answer = answer
            .extension(connection.allowance.clone())
            .body(())
            .unwrap();
        let mut exchange = async |sent: &str, kib: usize| -> io::Result<()> {
            connection.write_all(sent.as_bytes()).await?;
            for _ in 0..kib {
                theirs.write_all(&[b' '; 1024]).await?;
                connection.read_exact(&mut [0; 1024]).await?;
            }
            Ok(())
        };
        exchange("GET", 256).await.unwrap();
        head_arrived(answer);
        exchange("", 512).await.expect("a body has any length");
        exchange("GET", 128).await.unwrap();
        // After an upgrade nothing is a head.
        let said = exchange(" / HTTP/1.1", 256)
            .await
            .err()
            .map(|error| error.to_string());
        let limit = "more than 262144 bytes came before the head of an answer";
        assert_eq!(said.as_deref(), breaks.then_some(limit));
    }
}

#[tokio::test]
async fn no_more_is_read_at_once_than_leaves_the_room_for_reading_as_it_is() {
    let mut endless = HeadLimited::new(repeat(b' '));
    let read = endless.read(&mut [0; 64 << 10]).await.unwrap();
    assert!(read < 8 << 10, "{read}");
}

/// What comes of an answer with these lines in its head: its body's length or the error.
async fn answer(lines: &str) -> Result<usize, String> {
    let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\n{{}}");
    let connector = service_fn(move |_: Uri| {
        let (ours, mut theirs) = duplex(4 << 10);
        let answer = answer.clone();
        tokio::spawn(async move {
            theirs.read_u8().await.ok();
            theirs.write_all(answer.as_bytes()).await.ok();
            theirs.read_to_end(&mut Vec::new()).await.ok();
        });
        ready(Ok::<_, io::Error>(TokioIo::new(HeadLimited::new(ours))))
    });
    let client = client_builder().build::<_, Empty<Bytes>>(connector);
    let request = Request::get("http://server/").body(Empty::new()).unwrap();
    match answered(client.request(request).await) {
        Ok(answer) => Ok(answer.into_body().collect().await.unwrap().to_bytes().len()),
        Err(error) => Err(error.to_string()),
    }
}

/// As many cookies, each on a line of its own with so many bytes.
fn cookies(count: usize, length: usize) -> String {
    let value = "c".repeat(length - "set-cookie: \r\n".len());
    format!("set-cookie: {value}\r\n").repeat(count)
}

#[tokio::test]
async fn a_head_may_have_64_kib_and_1000_lines_and_no_answer_is_compressed() {
    let encoded = |name: &str| format!("content-encoding: {name}\r\n");
    for (lines, expected) in [
        (cookies(3, 4 << 10), Ok(2)),
        (cookies(999, 20), Ok(2)),
        (
            cookies(17, 4 << 10),
            Err("the head of the answer has more than 65536 bytes"),
        ),
        (
            cookies(1, 70_000),
            Err("the head of the answer has more than 65536 bytes"),
        ),
        (
            cookies(1_001, 20),
            Err("the head of the answer has more than 1000 lines"),
        ),
        (encoded("Identity"), Ok(2)),
        (
            encoded("gzip"),
            Err("the answer is compressed (gzip), which was not asked for"),
        ),
        (
            encoded("deflate, gzip"),
            Err("the answer is compressed (deflate, gzip), which was not asked for"),
        ),
    ] {
        let read = answer(&lines).await;
        assert_eq!(read, expected.map_err(str::to_owned), "{}", lines.len());
    }
}
