use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::transport::Trust;
use http::HeaderValue;

use super::*;

const TOKEN: &str = "s3cr3t-t0k3n";

/// A kubeconfig with these lines in its cluster and its user.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster:\n    {cluster}\n\
         users:\n- name: u\n  user:\n    {user}\n"
    )
}

const SERVER: &str = "server: https://kube-apiserver.shoot--p--s.svc";

fn with(lines: &str) -> String {
    format!("{SERVER}\n    {lines}")
}

fn token() -> String {
    format!("token: {TOKEN}")
}

fn read(text: &str) -> Result<ServerAccess, KubeconfigError> {
    shoot_access(text.as_bytes())
}

/// The authorities in PEM; `None` if it is left to the system.
fn authorities(access: &ServerAccess) -> Option<&[u8]> {
    match &access.trust {
        Trust::Authorities(pem) => Some(&pem.text),
        _ => None,
    }
}

fn error(text: &str) -> KubeconfigError {
    let Err(error) = read(text) else {
        panic!("it is accepted: {text}")
    };
    let said = format!("{error} {error:?}");
    for secret in [TOKEN, "p4ssw0rd", "s3cr3t"] {
        assert!(!said.contains(secret), "a credential is in {said}");
    }
    error
}

fn refused(text: &str) -> &'static str {
    match error(text) {
        KubeconfigError::Refused(field, _) => field,
        other => panic!("not refused but {other:?}"),
    }
}

/// The field that cannot be used.
fn wrong(text: &str) -> String {
    match error(text) {
        KubeconfigError::Unusable(error) => error.field.name,
        other => panic!("not unusable but {other:?}"),
    }
}

#[test]
fn gardeners_kubeconfig_is_understood() {
    let authority = BASE64_STANDARD.encode("-----BEGIN CERTIFICATE-----");
    let access = read(&kubeconfig(
        &with(&format!("certificate-authority-data: {authority}")),
        &token(),
    ))
    .expect("it can be used");
    assert_eq!(
        access.server.to_string(),
        "https://kube-apiserver.shoot--p--s.svc/"
    );
    assert_eq!(
        authorities(&access),
        Some(b"-----BEGIN CERTIFICATE-----".as_slice())
    );
    let header = access.headers.get(AUTHORIZATION).expect("credentials");
    assert_eq!(header.as_bytes(), format!("Bearer {TOKEN}").as_bytes());
    assert!(header.is_sensitive());
    assert!(access.identity.is_none() && access.proxy.is_none() && access.server_name.is_none());
}

#[test]
fn whatever_would_run_something_here_is_refused() {
    for user in [
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, 'touch /tmp/s3cr3t']}",
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}\n    token: s3cr3t-t0k3n",
    ] {
        assert_eq!(refused(&kubeconfig(SERVER, user)), "user.exec", "{user}");
    }
    assert_eq!(
        refused(&kubeconfig(
            SERVER,
            "auth-provider: {name: gcp, config: {access-token: s3cr3t}}"
        )),
        "user.auth-provider"
    );
}

#[test]
fn whatever_would_read_a_file_here_is_refused() {
    for (cluster, user, field) in [
        (
            SERVER.to_owned(),
            "tokenFile: /var/run/secrets/s3cr3t".to_owned(),
            "user.tokenFile",
        ),
        (
            SERVER.to_owned(),
            format!("tokenFile: /x\n    {}", token()),
            "user.tokenFile",
        ),
        (
            SERVER.to_owned(),
            "client-certificate: /x".to_owned(),
            "user.client-certificate",
        ),
        (
            SERVER.to_owned(),
            "client-key: /x".to_owned(),
            "user.client-key",
        ),
        (
            with("certificate-authority: /x"),
            token(),
            "cluster.certificate-authority",
        ),
    ] {
        assert_eq!(refused(&kubeconfig(&cluster, &user)), field);
    }
}

#[test]
fn a_server_that_is_not_verified_is_refused() {
    assert_eq!(
        refused(&kubeconfig(
            &with("insecure-skip-tls-verify: true"),
            &token()
        )),
        "cluster.insecure-skip-tls-verify"
    );
    assert!(
        read(&kubeconfig(
            &with("insecure-skip-tls-verify: false"),
            &token()
        ))
        .is_ok()
    );
}

#[test]
fn only_https_leads_to_an_api_server() {
    for server in [
        "http://kube-apiserver",
        "ftp://kube-apiserver",
        "file:///etc/passwd",
        "unix:/run/x",
        "kube-apiserver",
        "''",
        "data:text/plain,x",
    ] {
        assert_eq!(
            wrong(&kubeconfig(&format!("server: {server}"), &token())),
            "cluster.server",
            "{server}"
        );
    }
    assert_eq!(
        wrong(&kubeconfig("extensions: []", &token())),
        "cluster.server"
    );
}

#[test]
fn what_is_missing_is_named() {
    let good = kubeconfig(SERVER, &token());
    assert_eq!(
        wrong(&good.replace("current-context: c\n", "")),
        "current-context"
    );
    assert_eq!(
        wrong(&good.replace("current-context: c\n", "current-context: other\n")),
        "current-context"
    );
    assert_eq!(
        wrong(&good.replace("cluster: c,", "cluster: other,")),
        "context.cluster"
    );
    assert_eq!(
        wrong(&good.replace("user: u}", "user: other}")),
        "context.user"
    );
}

#[test]
fn nothing_at_all_is_a_missing_kubeconfig() {
    for text in ["", " \n\t"] {
        assert!(matches!(error(text), KubeconfigError::Missing), "{text:?}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_unreadable_and_never_quoted() {
    for (text, expected) in [
        (
            "s3cr3t-t0k3n",
            "it (line 1) is a text or a list, not a kubeconfig",
        ),
        (
            "\ntoken: [s3cr3t",
            "it (line 2) is not YAML, or larger than any kubeconfig",
        ),
        ("users: s3cr3t", "current-context is missing"),
        (
            "current-context: c\ncontexts: 7\nclusters: s3cr3t",
            "contexts (line 2) is not a list",
        ),
    ] {
        assert_eq!(error(text).to_string(), expected, "{text}");
    }
    let user = kubeconfig(SERVER, "token: {s3cr3t: x}");
    assert_eq!(
        error(&user).to_string(),
        "user.token (line 14) is not a string"
    );
    let error = shoot_access(b"\xff\xfes3cr3t\x00\xd8").err().unwrap();
    assert_eq!(error.to_string(), "it is not UTF-8 text");
}

#[test]
fn an_authority_must_be_base64() {
    assert_eq!(
        wrong(&kubeconfig(
            &with("certificate-authority-data: '%%%'"),
            &token()
        )),
        "cluster.certificate-authority-data"
    );
    let broken = "certificate-authority-data: |\n      LS0t\n      LS1C\n";
    let access = read(&kubeconfig(&with(broken), &token())).expect("line breaks are no fault");
    assert_eq!(authorities(&access), Some(b"-----B".as_slice()));
}

#[test]
fn an_empty_token_is_an_error_of_this_shoot() {
    for token in ["''", "'  '", "\"\\n\""] {
        let user = format!("token: {token}");
        assert_eq!(wrong(&kubeconfig(SERVER, &user)), "user.token", "{token}");
        let access = read(&kubeconfig(SERVER, &format!("{user}\n    username: it")));
        let header = access.unwrap().headers[AUTHORIZATION].clone();
        assert!(header.as_bytes().starts_with(b"Basic "), "{token}");
    }
}

#[test]
fn a_token_that_no_header_can_carry_is_an_error_without_it() {
    assert_eq!(
        wrong(&kubeconfig(SERVER, "token: \"s3cr3t\\r\\nx-evil: 1\"")),
        "user.token"
    );
}

#[test]
fn blanks_around_a_token_are_none_of_it() {
    let access = read(&kubeconfig(SERVER, "token: \"s3cr3t\\n\"")).expect("it can be used");
    assert_eq!(
        access.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        Some(b"Bearer s3cr3t".as_slice())
    );
}

#[test]
fn a_name_and_password_are_basic_credentials_unless_there_is_a_token() {
    let basic =
        read(&kubeconfig(SERVER, "username: it\n    password: p4ssw0rd")).expect("it can be used");
    let expected = format!("Basic {}", BASE64_STANDARD.encode("it:p4ssw0rd"));
    assert_eq!(
        basic.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        Some(expected.as_bytes())
    );
    let both = read(&kubeconfig(
        SERVER,
        &format!("username: it\n    password: p4ssw0rd\n    {}", token()),
    ))
    .expect("it can be used");
    assert!(
        both.headers
            .get(AUTHORIZATION)
            .is_some_and(|header| header.as_bytes().starts_with(b"Bearer "))
    );
}

#[test]
fn impersonation_is_passed_on() {
    let access = read(&kubeconfig(
        SERVER,
        &format!("{}\n    as: someone\n    as-groups: [a, b]", token()),
    ))
    .expect("it can be used");
    assert_eq!(
        access
            .headers
            .get("impersonate-user")
            .map(HeaderValue::as_bytes),
        Some(b"someone".as_slice())
    );
    assert_eq!(
        access.headers.get_all("impersonate-group").iter().count(),
        2
    );
}

#[test]
fn a_certificate_needs_its_key_and_the_other_way_round() {
    let data = BASE64_STANDARD.encode("s3cr3t");
    assert_eq!(
        wrong(&kubeconfig(
            SERVER,
            &format!("client-certificate-data: {data}")
        )),
        "user.client-key-data"
    );
    assert_eq!(
        wrong(&kubeconfig(SERVER, &format!("client-key-data: {data}"))),
        "user.client-certificate-data"
    );
    let both = |certificate: &str, key: &str| {
        kubeconfig(
            SERVER,
            &format!("client-certificate-data: {certificate}\n    client-key-data: {key}"),
        )
    };
    assert_eq!(wrong(&both("'%'", &data)), "user.client-certificate-data");
    assert_eq!(wrong(&both(&data, "'s3cr3t %'")), "user.client-key-data");
    let identity = read(&both(&data, &data)).expect("readable so far").identity;
    let identity = identity.map(|it| [it.certificate.text, it.key.text]);
    assert_eq!(identity, Some([b"s3cr3t".to_vec(), b"s3cr3t".to_vec()]));
}

#[test]
fn a_proxy_is_understood_and_its_scheme_checked() {
    let access =
        read(&kubeconfig(&with("proxy-url: http://proxy:3128"), &token())).expect("it can be used");
    assert_eq!(
        access.proxy.map(|proxy| proxy.uri().to_string()).as_deref(),
        Some("http://proxy:3128/")
    );
    for proxy in ["ftp://proxy:1", "file:///x", "'http://'"] {
        assert_eq!(
            wrong(&kubeconfig(&with(&format!("proxy-url: {proxy}")), &token())),
            "cluster.proxy-url",
            "{proxy}"
        );
    }
}

#[test]
fn a_server_name_of_its_own_is_understood() {
    for (name, shown) in [("api.internal", "api.internal"), ("192.0.2.7", "192.0.2.7")] {
        let lines = format!("tls-server-name: {name}\n    proxy-url: http://proxy:3128");
        let access = read(&kubeconfig(&with(&lines), &token())).expect("it can be used");
        assert_eq!(access.server_name.unwrap().to_str(), shown);
    }
    let lines = with("tls-server-name: 'not a name'");
    assert_eq!(
        wrong(&kubeconfig(&lines, &token())),
        "cluster.tls-server-name"
    );
}

#[test]
fn an_empty_field_is_an_absent_one() {
    let cluster = with(
        "tls-server-name: ''\n    proxy-url: ''\n    certificate-authority: ''\n    certificate-authority-data: ''",
    );
    let user = format!(
        "{}\n    tokenFile: ''\n    client-certificate: ''\n    client-key: ''",
        token()
    );
    let access = read(&kubeconfig(&cluster, &user)).expect("it can be used");
    assert!(
        access.server_name.is_none() && access.proxy.is_none() && authorities(&access).is_none()
    );
}
