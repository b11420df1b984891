use super::*;

const SERVER: &str = "server: https://kube-apiserver.shoot--p--s.svc";
/// "-----" and nothing else is no certificate; this is "-----BEGIN CERTIFICATE-----" and so on of one byte.
const CA: &str = "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
const TOKEN: &str = "token: s3cr3t-t0k3n";

/// A kubeconfig with these lines in its cluster and its user.
fn kubeconfig(cluster: &[&str], user: &[&str]) -> String {
    let [cluster, user] = [cluster, user].map(|lines| lines.join("\n    "));
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster:\n    {cluster}\n\
         users:\n- name: u\n  user:\n    {user}\n"
    )
}

/// What is wrong with it. That never holds a credential.
fn wrong(text: &str) -> String {
    let error = shoot_server(text.as_bytes()).err();
    let error = error.unwrap_or_else(|| panic!("it is accepted: {text}"));
    let said = error.to_string();
    for secret in ["s3cr3t", "p4ssw0rd"] {
        let shown = format!("{said} {error:?}");
        assert!(!shown.contains(secret), "a credential is in {shown}");
    }
    said
}

#[test]
fn gardeners_kubeconfig_is_understood() {
    let text = kubeconfig(&[SERVER, CA], &["token: \"s3cr3t\\n\""]);
    let server = shoot_server(text.as_bytes()).expect("it can be used");
    let url = "https://kube-apiserver.shoot--p--s.svc/";
    assert_eq!(server.config.cluster_url.to_string(), url);
    assert_eq!(server.config.root_cert.as_deref(), Some(&[vec![0]][..]));
    // Blanks around a token are none of it.
    let user = serde_json::to_value(&server.config.auth_info).expect("a user");
    assert_eq!(user, serde_json::json!({"token": "s3cr3t"}));
    assert!(server.proxy.is_none());
}

/// Lines in the cluster, lines in the user beside or in place of the token, and the refusal.
const REFUSALS: &str = r#"
    CA | exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, 'touch /tmp/s3cr3t']} | user.exec is refused: it would run a program in the watchdog's own pod
    CA | auth-provider: {name: gcp, config: {access-token: s3cr3t}} | user.auth-provider is refused: it would run a program in the watchdog's own pod
    CA | tokenFile: /var/run/secrets/s3cr3t | user.tokenFile is refused: it would read a file of the watchdog's own pod
    CA | client-certificate: /x | user.client-certificate is refused: it would read a file of the watchdog's own pod
    CA | client-key: /x | user.client-key is refused: it would read a file of the watchdog's own pod
    certificate-authority: /x | as: it | cluster.certificate-authority is refused: it would read a file of the watchdog's own pod
    CA; insecure-skip-tls-verify: true | as: it | cluster.insecure-skip-tls-verify is refused: anyone on the way could take the credentials and forge an outage
"#;

#[test]
fn what_would_run_a_program_read_a_file_or_trust_anyone_is_refused() {
    for row in REFUSALS.trim().lines() {
        let cells: Vec<_> = row.split(" | ").map(str::trim).collect();
        let [cluster, user, expected] = cells[..] else {
            panic!("{row}")
        };
        let cluster = cluster.replace("CA", CA);
        let cluster: Vec<_> = [SERVER].into_iter().chain(cluster.split("; ")).collect();
        for user in [&[user][..], &[user, TOKEN]] {
            assert_eq!(wrong(&kubeconfig(&cluster, user)), expected);
        }
    }
}

#[test]
fn only_https_leads_to_an_api_server() {
    for server in ["http://a", "file:///etc/passwd", "a", "''", "https://"] {
        let said = wrong(&kubeconfig(&[&format!("server: {server}"), CA], &[TOKEN]));
        let is_named = said.contains("cluster.server ") || said.contains("cluster url");
        assert!(is_named, "{server}: {said}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_unreadable_and_never_quoted() {
    let missing = "the Secret has no key \"kubeconfig\", or it is empty";
    let good = kubeconfig(&[SERVER, CA], &[TOKEN]);
    let no_credentials = "user.token is missing, and so are a client certificate and a username";
    let no_authority =
        "cluster.certificate-authority-data is missing, or holds no certificate in PEM";
    let no_proxy = "cluster.proxy-url is no URL of an http proxy";
    for (given, taken, expected) in [
        (&*good, "", missing),
        (
            &good,
            "s3cr3t-t0k3n",
            "it is not a kubeconfig in YAML (line 1)",
        ),
        (
            &good,
            "\ntoken: [s3cr3t",
            "it is not a kubeconfig in YAML (line 2)",
        ),
        (
            &good,
            "apiVersion: v1",
            "failed to determine current context",
        ),
        (
            "text: c\n",
            "text: s3cr3t\n",
            "the current context does not exist",
        ),
        (
            "{cluster: c",
            "{cluster: s3cr3t",
            "the context's cluster does not exist",
        ),
        (
            "token: ",
            "token: {s3cr3t: x} #",
            "it is not a kubeconfig in YAML (line 15)",
        ),
        (
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS",
            "s3cr3t!",
            "failed to load certificate authority: failed to decode base64 data: Invalid symbol 33, offset 6.",
        ),
        (CA, "certificate-authority-data: czNjcjN0", no_authority),
        (CA, "", no_authority),
        (SERVER, "", "cluster url is missing on selected cluster"),
        (
            SERVER,
            "server: 'https://:s3cr3t@'",
            "failed to parse cluster url: invalid authority",
        ),
        ("user: u}", "user: s3cr3t}", no_credentials),
        (TOKEN, "username: it", no_credentials),
        (TOKEN, "token: \"\\n\"", no_credentials),
        (
            "    server:",
            "    proxy-url: socks5://u:s3cr3t@p:1\n    server:",
            no_proxy,
        ),
        (
            "    server:",
            "    proxy-url: http://s3cr3t@ /\n    server:",
            "failed to parse proxy url: invalid uri character",
        ),
    ] {
        let bad = good.replace(given, taken);
        assert_ne!(bad, good);
        assert_eq!(wrong(&bad), expected, "{bad}");
    }
}

#[test]
fn a_token_that_no_header_can_carry_is_refused() {
    for token in ["\"s3cr3t\\u0001\"", "\"a\\nb\""] {
        let text = kubeconfig(&[SERVER, CA], &[&format!("token: {token}")]);
        let expected = "user.token contains characters that an HTTP header cannot carry";
        assert_eq!(wrong(&text), expected, "{token}");
    }
}

#[test]
fn a_certificate_or_a_key_that_cannot_be_used_is_named_and_not_quoted() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    // "-----BEGIN s3cr3t" is no PEM that is understood.
    let broken = "client-key-data: LS0tLS1CRUdJTiBzM2NyM3QK";
    let certificate = "client-certificate-data: AAAA";
    for (user, named) in [
        (&[TOKEN][..], "failed to add a root certificate: "),
        (&[certificate, broken], "failed to add a root certificate: "),
        (&[certificate], "failed to load client key: "),
    ] {
        let text = kubeconfig(&[SERVER, CA], user);
        let server = shoot_server(text.as_bytes()).expect("it is read");
        let said = server.route().err().expect(named).to_string();
        assert!(
            said.starts_with(named) && !said.contains("s3cr3t"),
            "{said}"
        );
    }
}
