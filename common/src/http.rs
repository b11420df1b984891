//! The two small HTTP servers of an agent: metrics and health (rule 14).

use std::time::Duration;

use anyhow::Context;
use axum::Router;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time for answers under way when a server is to end; they take milliseconds, and the process has
/// 5 s for its end (rule 85). Half a request keeps a connection for as long.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Listens on an address as Go writes them: `:9643` is every interface, a host may be a name, port
/// 0 is any free one. `None` for `0` or nothing, which switches the server off.
///
/// # Errors
/// When the address makes no sense or is taken.
pub(crate) async fn listen(
    flag: &'static str,
    address: &str,
) -> anyhow::Result<Option<TcpListener>> {
    if ["", "0"].contains(&address) {
        return Ok(None);
    }
    let bound = if address.starts_with(':') {
        // All of IPv6 and with it IPv4, or just the latter where there is no IPv6.
        match TcpListener::bind(format!("[::]{address}")).await {
            Err(_) => TcpListener::bind(format!("0.0.0.0{address}")).await,
            bound => bound,
        }
    } else {
        TcpListener::bind(address).await
    };
    Ok(Some(bound.with_context(|| format!("--{flag}={address}"))?))
}

/// Serves until cancelled, and finishes answers that are under way.
pub(crate) async fn serve(listener: TcpListener, router: Router, cancelled: CancellationToken) {
    let late = async {
        cancelled.cancelled().await;
        sleep(END_LIMIT).await;
    };
    let signal = cancelled.clone().cancelled_owned();
    let served = axum::serve(listener, router).with_graceful_shutdown(signal);
    tokio::select! {
        // It never fails.
        _ = served.into_future() => {}
        () = late => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn zero_switches_a_server_off_and_other_addresses_are_as_in_go() {
        for address in ["0", ""] {
            assert!(listen("it", address).await.unwrap().is_none());
        }
        let listener = listen("it", ":0").await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_unspecified());
        let taken = address.to_string();
        for (address, problem) in [(&*taken, "Address already in use"), (":x", "")] {
            let error = format!("{:#}", listen("it", address).await.unwrap_err());
            assert!(
                error.starts_with(&format!("--it={address}: {problem}")),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_server_waits_for_answers_and_for_no_client() {
        let slow = axum::routing::get(async || {
            sleep(END_LIMIT / 2).await;
            "fine"
        });
        for (sent, answer, lasts) in [
            ("", "", Duration::ZERO),
            ("GET / HTTP/1.1\r\nhost: it\r\n\r\n", "fine", END_LIMIT / 2),
            ("GET / HTTP/1.1\r\nhost: it\r\n", "", END_LIMIT),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let router = Router::new().route("/", slow.clone());
            let cancelled = CancellationToken::new();
            let server = tokio::spawn(serve(listener, router, cancelled.clone()));
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(sent.as_bytes()).await.unwrap();
            sleep(Duration::from_millis(100)).await;
            cancelled.cancel();
            let begin = Instant::now();
            server.await.unwrap();
            let took = begin.elapsed();
            assert!(
                took <= lasts + Duration::from_millis(100),
                "{sent:?}: {took:?}"
            );
            if !answer.is_empty() {
                let mut text = String::new();
                client.read_to_string(&mut text).await.unwrap();
                assert!(text.ends_with(answer), "{sent:?}: {text}");
            }
        }
    }
}
