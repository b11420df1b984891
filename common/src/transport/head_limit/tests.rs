use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tower::service_fn;

use super::*;

const PIECE: [u8; 1024] = [b' '; 1024];

/// A connection, its other end, and an answer over it.
fn connected() -> (HeadLimited<DuplexStream>, DuplexStream, Response<()>) {
    let (ours, theirs) = duplex(2 * PIECE.len());
    let connection = HeadLimited::new(ours);
    let mut answer = Response::new(());
    answer.extensions_mut().insert(connection.allowance.clone());
    (connection, theirs, answer)
}

/// Reads so many pieces that the other end sends.
async fn read(
    connection: &mut HeadLimited<DuplexStream>,
    theirs: &mut DuplexStream,
    pieces: usize,
) -> io::Result<()> {
    for _ in 0..pieces {
        theirs.write_all(&PIECE).await?;
        connection.read_exact(&mut PIECE.clone()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_breaks_when_too_much_comes_before_an_answer() {
    const ALLOWED: usize = MAX_BEFORE_BODY / PIECE.len();
    let (mut connection, mut theirs, answer) = connected();
    for _ in 0..2 {
        connection.write_all(b"GET").await.unwrap();
        read(&mut connection, &mut theirs, ALLOWED).await.unwrap();
        head_arrived(answer.clone());
        read(&mut connection, &mut theirs, 2 * ALLOWED)
            .await
            .expect("a body has any length");
    }
    connection.write_all(b"GET").await.unwrap();
    read(&mut connection, &mut theirs, ALLOWED / 2)
        .await
        .unwrap();
    connection.write_all(b" / HTTP/1.1").await.unwrap();
    let error = read(&mut connection, &mut theirs, ALLOWED)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "more than 262144 bytes came before the head of an answer"
    );
}

#[tokio::test]
async fn what_follows_an_upgrade_has_any_length() {
    let (mut connection, mut theirs, mut answer) = connected();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    connection.write_all(b"GET").await.unwrap();
    head_arrived(answer);
    for _ in 0..2 {
        connection.write_all(b"a frame").await.unwrap();
        let pieces = 2 * MAX_BEFORE_BODY / PIECE.len();
        read(&mut connection, &mut theirs, pieces).await.unwrap();
    }
}

#[tokio::test]
async fn no_more_is_read_at_once_than_leaves_the_room_for_reading_as_it_is() {
    let (ours, mut theirs) = duplex(64 << 10);
    theirs.write_all(&[b' '; 64 << 10]).await.unwrap();
    let mut room = vec![0; 64 << 10];
    let read = HeadLimited::new(ours).read(&mut room).await.unwrap();
    assert!(read < 8 << 10, "{read}");
}

/// What comes of an answer with these lines in its head and this body: the body's length or the
/// error.
async fn answer(lines: &str, body: &[u8]) -> Result<usize, String> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{lines}content-length: {length}\r\n\r\n");
    let answer = Arc::new([head.as_bytes(), body].concat());
    let connector = service_fn(move |_: Uri| {
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            let (ours, mut theirs) = duplex(4 << 10);
            tokio::spawn(async move {
                theirs.read_u8().await.ok();
                theirs.write_all(&answer).await.ok();
                theirs.read_to_end(&mut Vec::new()).await.ok();
            });
            Ok::<_, io::Error>(TokioIo::new(HeadLimited::new(ours)))
        })
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
    let name = "set-cookie: ";
    let value = "c".repeat(length - name.len() - "\r\n".len());
    format!("{name}{value}\r\n").repeat(count)
}

#[tokio::test]
async fn a_head_may_have_64_kib_and_1000_lines() {
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
    ] {
        let read = answer(&lines, b"{}").await;
        assert_eq!(read, expected.map_err(str::to_owned), "{}", lines.len());
    }
}

#[tokio::test]
async fn a_compressed_answer_is_told_as_what_it_is() {
    for (encoding, expected) in [
        ("gzip", Err("gzip")),
        ("br", Err("br")),
        ("deflate, gzip", Err("deflate, gzip")),
        ("Identity", Ok(2)),
    ] {
        let read = answer(&format!("content-encoding: {encoding}\r\n"), b"{}").await;
        let words = |name| format!("the answer is compressed ({name}), which was not asked for");
        assert_eq!(read, expected.map_err(words));
    }
}
