//! What a TLS client offers before the server is known.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// The first message of the next client, with its headers. The connection is closed after it.
///
/// # Errors
/// When no client comes, or it says nothing.
pub async fn read_client_hello(listener: &TcpListener) -> io::Result<Vec<u8>> {
    let (mut stream, _) = listener.accept().await?;
    let mut message = vec![0; 5];
    stream.read_exact(&mut message).await?;
    let length = usize::from(u16::from_be_bytes([message[3], message[4]]));
    message.resize(5 + length, 0);
    stream.read_exact(&mut message[5..]).await?;
    Ok(message)
}

/// The TLS versions that a client offers, the oldest first: those of the extension
/// `supported_versions`, or without one the version of the message (RFC 8446, 4.2.1). Empty for
/// what is no such message.
pub fn versions(hello: &[u8]) -> Vec<u16> {
    read(hello).unwrap_or_default()
}

fn read(hello: &[u8]) -> Option<Vec<u16>> {
    let number = |at: usize, length: usize| -> Option<usize> {
        Some(
            hello
                .get(at..at + length)?
                .iter()
                .fold(0, |sum, &byte| sum << 8 | usize::from(byte)),
        )
    };
    let version = |at: usize| u16::try_from(number(at, 2)?).ok();
    // The headers of record and message; version and random; session id, cipher suites and
    // compression methods by length.
    let begin = 5 + 4;
    let mut at = begin + 2 + 32;
    at += 1 + number(at, 1)?;
    at += 2 + number(at, 2)?;
    at += 1 + number(at, 1)?;
    at += 2;
    while at < hello.len() {
        let (kind, length) = (number(at, 2)?, number(at + 2, 2)?);
        at += 4;
        if kind == 43 {
            let mut versions = (at + 1..at + length)
                .step_by(2)
                .map(version)
                .collect::<Option<Vec<u16>>>()?;
            versions.sort_unstable();
            return Some(versions);
        }
        at += length;
    }
    Some(vec![version(begin)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with these extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut message = vec![22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 2];
        message.extend([0; 32]);
        message.extend([0, 0, 2, 0x13, 1, 1, 0]);
        message.extend(
            u16::try_from(extensions.len())
                .expect("short")
                .to_be_bytes(),
        );
        message.extend(extensions);
        message
    }

    #[test]
    fn versions_are_those_of_the_extension_or_that_of_the_message() {
        assert_eq!(
            versions(&hello(&[0, 0, 0, 1, 9, 0, 43, 0, 5, 4, 3, 4, 3, 1])),
            [0x0301, 0x0304]
        );
        assert_eq!(versions(&hello(&[])), [0x0302]);
        assert!(versions(b"GET / HTTP/1.1\r\n").is_empty());
    }
}
