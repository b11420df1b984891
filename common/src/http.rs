//! The two small HTTP servers of an agent: metrics and health (rule 14).

use std::net::SocketAddr;

use axum::Router;
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("--{flag}={address}: {problem}")]
pub struct BindError {
    flag: &'static str,
    address: String,
    problem: String,
}

/// Listens on an address as Go writes them: `:9643` is every interface, a host may be a name, port 0 is any free one.
/// None for `0`, which switches the server off.
///
/// # Errors
/// When the address makes no sense or is taken.
pub async fn listen(flag: &'static str, address: &str) -> Result<Option<TcpListener>, BindError> {
    if address == "0" {
        return Ok(None);
    }
    let failed = |problem: String| BindError { flag, address: address.to_owned(), problem };
    let mut problem = "is no address".to_owned();
    for candidate in candidates(address).await.map_err(|error| failed(error.to_string()))? {
        match TcpListener::bind(candidate).await {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(failed(problem))
}

/// The addresses to try in turn: without a host all of IPv6 and with it IPv4, or just the latter where there is no IPv6.
async fn candidates(address: &str) -> std::io::Result<Vec<SocketAddr>> {
    match address.strip_prefix(':') {
        Some(port) => {
            let port = port.parse().map_err(|_| std::io::Error::other("its port is no number from 0 to 65535"))?;
            Ok(vec![SocketAddr::from(([0; 16], port)), SocketAddr::from(([0; 4], port))])
        }
        None => Ok(lookup_host(address).await?.collect()),
    }
}

/// Serves until cancelled. Answers that are under way are finished.
pub async fn serve(listener: TcpListener, router: Router, cancelled: CancellationToken) {
    let ended = axum::serve(listener, router).with_graceful_shutdown(cancelled.cancelled_owned()).await;
    if let Err(error) = ended {
        tracing::error!(error = %error, "HTTP server ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn zero_switches_a_server_off() {
        assert!(listen("metrics-bind-addr", "0").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn port_zero_is_any_free_port_on_every_interface() {
        let listener = listen("metrics-bind-addr", ":0").await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.port() > 0 && address.ip().is_unspecified());
    }

    #[tokio::test]
    async fn an_occupied_port_is_told_with_flag_and_address() {
        let taken = listen("metrics-bind-addr", "127.0.0.1:0").await.unwrap().unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let error = listen("metrics-bind-addr", &address).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("--metrics-bind-addr={address}: Address already in use")), "{error}");
    }

    #[tokio::test]
    async fn a_senseless_address_is_told() {
        for address in ["", "nonsense", ":99999", ":x"] {
            assert!(listen("health-bind-addr", address).await.is_err(), "{address:?}");
        }
    }
}
