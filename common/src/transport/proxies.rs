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

    /// What `NO_PROXY` says, a server, and whether the proxy leads there.
    const NO_PROXY: &str = "
        *                            | seed.example       | no
        other, * ,x                  | seed.example       | no
        *x                           | seed.example       | yes
        seed.example                 | seed.example:6443  | no
        SEED.example                 | api.seed.EXAMPLE   | no
        seed.example                 | otherseed.example  | yes
        .seed.example                | seed.example       | yes
        .seed.example                | api.seed.example   | no
        *.seed.example               | seed.example       | yes
        *.seed.example               | a.b.seed.example   | no
        other.example , seed.example | seed.example       | no
        other.example,,              | seed.example       | yes
        seed.example:6443            | seed.example:6443  | no
        seed.example:6443            | seed.example       | yes
        seed.example:443             | seed.example       | no
        :443                         | seed.example       | yes
        10.0.0.1                     | 10.0.0.1:6443      | no
        10.0.0.1:6443                | 10.0.0.1:6443      | no
        10.0.0.1:443                 | 10.0.0.1:6443      | yes
        10.0.0.0/8                   | 10.9.9.9           | no
        10.0.0.0/8                   | 11.9.9.9           | yes
        10.0.0.0/8                   | 10.example         | yes
        fd00::1                      | [fd00::1]:6443     | no
        [fd00::1]:6443               | [fd00::1]:6443     | no
        [fd00::1]:443                | [fd00::1]:6443     | yes
        fd00::/8                     | [fd12::1]          | no
                                     | 10.0.0.1           | yes
                                     | localhost.example  | yes
                                     | [::2]              | yes
                                     | 127.0.0.1:6443     | no, to this machine
                                     | 127.8.0.1          | no, to this machine
                                     | localhost:6443     | no, to this machine
                                     | LOCALHOST          | no, to this machine
                                     | [::1]:6443         | no, to this machine
                                     | [::ffff:127.0.0.1] | no, to this machine";

    /// A server, a variable and its value, and the proxy. An error does not show it: it may carry a
    /// password.
    const PROXIES: &str = "
        https://a | HTTPS_PROXY | proxy:3128                | http://proxy:3128/
        https://a | https_proxy | http://proxy:3128         | http://proxy:3128/
        https://a | HTTPS_PROXY | socks5://proxy:1080       | socks5://proxy:1080/
        https://a | HTTPS_PROXY |                           | none
        https://a | HTTP_PROXY  | proxy:3128                | none
        http://a  | HTTP_PROXY  | proxy:3128                | http://proxy:3128/
        https://a | ALL_PROXY   | proxy:3128                | none
        https://a | HTTPS_PROXY | ftp://user:s3cr3t@proxy:1 | HTTPS_PROXY is no URL of an http, https or socks5 proxy
        https://a | HTTPS_PROXY | http://                   | HTTPS_PROXY is no URL of an http, https or socks5 proxy
        https://a | HTTPS_PROXY | http://user:s3cr3t@ /     | HTTPS_PROXY is no URL of an http, https or socks5 proxy";

    /// The proxy for a server, or what is wrong; the values of variables have blanks around them.
    fn proxy(server: &str, variables: [(&str, &str); 2]) -> String {
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(format!(" {value} "))
        };
        match proxy_of(&server.parse().unwrap(), variable) {
            Ok(proxy) => proxy.map_or("none".to_owned(), |proxy| proxy.uri().to_string()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn no_proxy_is_read_as_by_go() {
        for row in NO_PROXY.trim_matches('\n').lines() {
            let [no_proxy, server, used] = row.split('|').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            let variables = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", no_proxy)];
            let proxy = proxy(&format!("https://{}", server.trim()), variables);
            assert_eq!(
                proxy == "none",
                used.trim_start().starts_with("no"),
                "{row}"
            );
        }
    }

    #[test]
    fn the_proxy_is_that_of_the_servers_scheme() {
        for row in PROXIES.trim().lines() {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let [server, name, value, expected] = cells[..] else {
                panic!("{row}")
            };
            assert_eq!(proxy(server, [(name, value), ("", "")]), expected, "{row}");
        }
    }
}
