//! The proxy to a server: the kubeconfig's, else the environment's by Go's rules (rule 42).

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use ipnet::IpNet;

use super::kubeconfig::{Field, KubeconfigError};

/// The environment's proxy for a server. As in Go none leads to this machine, `NO_PROXY` is a list
/// of names with their subdomains, addresses and networks, each perhaps with a port, and
/// `ALL_PROXY` says nothing.
///
/// # Errors
/// If the environment's is no proxy.
pub(super) fn proxy_of(
    server: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Intercept>, KubeconfigError> {
    let set = |upper: &str| {
        let is_set = |value: &String| !value.trim().is_empty();
        let lower = upper.to_lowercase();
        [upper, &lower]
            .into_iter()
            .find_map(|name| variable(name).filter(is_set))
    };
    let (name, port) = match server.scheme_str() {
        Some("https") => ("HTTPS_PROXY", 443),
        _ => ("HTTP_PROXY", 80),
    };
    let Some(proxy) = set(name) else {
        return Ok(None);
    };
    let server = Target::new(
        server.host().unwrap_or_default(),
        server.port_u16().unwrap_or(port),
    );
    if server.is_loopback() || server.is_listed(&set("NO_PROXY").unwrap_or_default()) {
        return Ok(None);
    }
    let proxy = usable(proxy.trim());
    proxy
        .map(Some)
        .map_err(|problem| Field::named(name).error(problem))
}

/// The error leaves the URL out, since it may carry a password.
pub(super) fn usable(proxy: &str) -> Result<Intercept, &'static str> {
    let matcher = Matcher::builder().all(proxy).build();
    let proxy = matcher.intercept(&Uri::from_static("https://any"));
    let is_known = |proxy: &Intercept| {
        let schemes = ["http", "https", "socks5", "socks5h"];
        let scheme = proxy.uri().scheme_str();
        scheme.is_some_and(|scheme| schemes.contains(&scheme))
            && proxy.uri().host().is_some_and(|host| !host.is_empty())
    };
    proxy
        .filter(is_known)
        .ok_or("is no URL of an http, https or socks5 proxy")
}

/// The server that a proxy is looked for.
struct Target {
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Target {
    fn new(host: &str, port: u16) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: host.to_lowercase(),
            address: host
                .parse()
                .ok()
                .map(|address: IpAddr| address.to_canonical()),
            port,
        }
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address.is_some_and(|address| address.is_loopback())
    }

    fn is_listed(&self, list: &str) -> bool {
        list.split(',').any(|entry| self.is(entry.trim()))
    }

    fn is(&self, entry: &str) -> bool {
        if entry == "*" {
            return true;
        }
        if let Ok(network) = entry.parse::<IpNet>() {
            return self
                .address
                .is_some_and(|address| network.contains(&address));
        }
        let (host, port) = split_port(entry);
        if port.is_some_and(|port| port != self.port.to_string()) {
            return false;
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.address == Some(address.to_canonical());
        }
        let host = host.to_lowercase();
        let (domain, itself) = match host.strip_prefix("*.").or(host.strip_prefix('.')) {
            Some(domain) => (domain, false),
            None => (&*host, true),
        };
        let before = self.host.strip_suffix(domain);
        !domain.is_empty()
            && before.is_some_and(|before| before.ends_with('.') || itself && before.is_empty())
    }
}

/// An address of IPv6 has a port only behind brackets.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port)),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy for a server, with these variables.
    fn proxy(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let variable = |name: &str| {
            let set = variables.iter().find(|(known, _)| *known == name);
            set.map(|(_, value)| (*value).to_owned())
        };
        let proxy = proxy_of(&server.parse().unwrap(), variable);
        let proxy = proxy.map(|proxy| proxy.map(|proxy| proxy.uri().to_string()));
        proxy.map_err(|error| error.to_string())
    }

    #[test]
    fn no_proxy_is_read_as_by_go() {
        for (no_proxy, server, is_used) in [
            ("*", "seed.example", false),
            ("other, * ,x", "seed.example", false),
            ("*x", "seed.example", true),
            ("seed.example", "seed.example:6443", false),
            ("SEED.example", "api.seed.EXAMPLE", false),
            ("seed.example", "otherseed.example", true),
            (".seed.example", "seed.example", true),
            (".seed.example", "api.seed.example", false),
            ("*.seed.example", "seed.example", true),
            ("*.seed.example", "a.b.seed.example", false),
            (" other.example , seed.example ", "seed.example", false),
            ("other.example,,", "seed.example", true),
            ("seed.example:6443", "seed.example:6443", false),
            ("seed.example:6443", "seed.example", true),
            ("seed.example:443", "seed.example", false),
            (":443", "seed.example", true),
            ("10.0.0.1", "10.0.0.1:6443", false),
            ("10.0.0.1:6443", "10.0.0.1:6443", false),
            ("10.0.0.1:443", "10.0.0.1:6443", true),
            ("10.0.0.0/8", "10.9.9.9", false),
            ("10.0.0.0/8", "11.9.9.9", true),
            ("10.0.0.0/8", "10.example", true),
            ("fd00::1", "[fd00::1]:6443", false),
            ("[fd00::1]:6443", "[fd00::1]:6443", false),
            ("[fd00::1]:443", "[fd00::1]:6443", true),
            ("fd00::/8", "[fd12::1]", false),
            // None leads to this machine.
            ("", "127.0.0.1:6443", false),
            ("", "127.8.0.1", false),
            ("", "localhost:6443", false),
            ("", "LOCALHOST", false),
            ("", "[::1]:6443", false),
            ("", "[::ffff:127.0.0.1]", false),
            ("", "10.0.0.1", true),
            ("", "localhost.example", true),
            ("", "[::2]", true),
        ] {
            let variables = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", no_proxy)];
            let proxy = proxy(&format!("https://{server}"), &variables).unwrap();
            assert_eq!(proxy.is_some(), is_used, "{no_proxy:?} {server}");
        }
    }

    #[test]
    fn the_proxy_is_that_of_the_servers_scheme() {
        let is_none = "HTTPS_PROXY is no URL of an http, https or socks5 proxy";
        for (server, variable, value, expected) in [
            (
                "https://a",
                "HTTPS_PROXY",
                "proxy:3128",
                Ok(Some("http://proxy:3128/")),
            ),
            (
                "https://a",
                "https_proxy",
                " http://proxy:3128 ",
                Ok(Some("http://proxy:3128/")),
            ),
            (
                "https://a",
                "HTTPS_PROXY",
                "socks5://proxy:1080",
                Ok(Some("socks5://proxy:1080/")),
            ),
            ("https://a", "HTTPS_PROXY", " ", Ok(None)),
            ("https://a", "HTTP_PROXY", "proxy:3128", Ok(None)),
            (
                "http://a",
                "HTTP_PROXY",
                "proxy:3128",
                Ok(Some("http://proxy:3128/")),
            ),
            ("https://a", "ALL_PROXY", "proxy:3128", Ok(None)),
            // It is not shown: it may carry a password.
            (
                "https://a",
                "HTTPS_PROXY",
                "ftp://user:s3cr3t@proxy:1",
                Err(is_none),
            ),
            ("https://a", "HTTPS_PROXY", "http://", Err(is_none)),
            (
                "https://a",
                "HTTPS_PROXY",
                "http://user:s3cr3t@ /",
                Err(is_none),
            ),
        ] {
            let proxy = proxy(server, &[(variable, value)]);
            let expected = expected.map(|proxy| proxy.map(str::to_owned));
            assert_eq!(proxy, expected.map_err(str::to_owned), "{variable} {value}");
        }
    }
}
