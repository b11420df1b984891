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

    /// True if the proxy is used for this server with this NO_PROXY.
    fn is_used(server: &str, no_proxy: &str) -> bool {
        let variable = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some(no_proxy.to_owned()),
            _ => None,
        };
        let proxy = proxy_of(&server.parse().unwrap(), variable).unwrap();
        proxy.is_some()
    }

    #[test]
    fn no_proxy_of_the_environment_leads_to_this_machine() {
        for server in [
            "https://127.0.0.1:6443",
            "https://127.8.0.1",
            "https://localhost:6443",
            "https://LOCALHOST",
            "https://[::1]:6443",
            "https://[::ffff:127.0.0.1]",
        ] {
            assert!(!is_used(server, ""), "{server}");
        }
        for server in [
            "https://10.0.0.1",
            "https://localhost.example",
            "https://[::2]",
        ] {
            assert!(is_used(server, ""), "{server}");
        }
    }

    #[test]
    fn no_proxy_is_read_as_by_go() {
        for (no_proxy, server, used) in [
            ("*", "https://seed.example", false),
            ("other, * ,x", "https://seed.example", false),
            ("*x", "https://seed.example", true),
            ("seed.example", "https://seed.example:6443", false),
            ("SEED.example", "https://api.seed.EXAMPLE", false),
            ("seed.example", "https://otherseed.example", true),
            (".seed.example", "https://seed.example", true),
            (".seed.example", "https://api.seed.example", false),
            ("*.seed.example", "https://seed.example", true),
            ("*.seed.example", "https://a.b.seed.example", false),
            (
                " other.example , seed.example ",
                "https://seed.example",
                false,
            ),
            ("other.example,,", "https://seed.example", true),
            ("seed.example:6443", "https://seed.example:6443", false),
            ("seed.example:6443", "https://seed.example", true),
            ("seed.example:443", "https://seed.example", false),
            (":443", "https://seed.example", true),
            ("10.0.0.1", "https://10.0.0.1:6443", false),
            ("10.0.0.1:6443", "https://10.0.0.1:6443", false),
            ("10.0.0.1:443", "https://10.0.0.1:6443", true),
            ("10.0.0.0/8", "https://10.9.9.9", false),
            ("10.0.0.0/8", "https://11.9.9.9", true),
            ("10.0.0.0/8", "https://10.example", true),
            ("fd00::1", "https://[fd00::1]:6443", false),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", false),
            ("[fd00::1]:443", "https://[fd00::1]:6443", true),
            ("fd00::/8", "https://[fd12::1]", false),
        ] {
            assert_eq!(is_used(server, no_proxy), used, "{no_proxy:?} {server}");
        }
    }

    #[test]
    fn the_proxy_is_that_of_the_servers_scheme() {
        let server = |url: &str| url.parse::<Uri>().unwrap();
        let only = |name: &'static str, value: &'static str| {
            move |variable: &str| (variable == name).then(|| value.to_owned())
        };
        for (variable, url, used) in [
            ("HTTPS_PROXY", "https://seed.example", true),
            ("https_proxy", "https://seed.example", true),
            ("HTTP_PROXY", "https://seed.example", false),
            ("HTTP_PROXY", "http://seed.example", true),
            ("ALL_PROXY", "https://seed.example", false),
        ] {
            let proxy = proxy_of(&server(url), only(variable, "proxy:3128")).unwrap();
            assert_eq!(proxy.is_some(), used, "{variable} {url}");
        }
        for (value, shown) in [
            ("proxy:3128", "http://proxy:3128/"),
            (" http://proxy:3128 ", "http://proxy:3128/"),
            ("socks5://proxy:1080", "socks5://proxy:1080/"),
        ] {
            let proxy = proxy_of(&server("https://seed.example"), only("HTTPS_PROXY", value));
            assert_eq!(proxy.unwrap().unwrap().uri(), shown, "{value}");
        }
        let empty = proxy_of(&server("https://seed.example"), only("HTTPS_PROXY", " "));
        assert!(empty.unwrap().is_none());
    }

    #[test]
    fn a_variable_that_is_no_proxy_is_named_and_not_shown() {
        for value in [
            "ftp://user:s3cr3t@proxy:1",
            "http://",
            "http://user:s3cr3t@ /",
        ] {
            let variable = |name: &str| (name == "HTTPS_PROXY").then(|| value.to_owned());
            let refused = proxy_of(&Uri::from_static("https://seed.example"), variable);
            let error = refused.map(|_| ()).expect_err(value);
            assert_eq!(
                error.to_string(),
                "HTTPS_PROXY is no URL of an http, https or socks5 proxy"
            );
        }
    }
}
