use base64::Engine as _;
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

fn read(text: &str) -> Result<ShootAccess, KubeconfigError> {
    ShootAccess::from_kubeconfig(text.as_bytes())
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

fn invalid(text: &str) -> &'static str {
    match error(text) {
        KubeconfigError::Invalid(field, _) => field,
        other => panic!("not invalid but {other:?}"),
    }
}

fn absent(text: &str) -> &'static str {
    match error(text) {
        KubeconfigError::Absent(field) => field,
        other => panic!("not absent but {other:?}"),
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
        access.authorities.as_deref(),
        Some(b"-----BEGIN CERTIFICATE-----".as_slice())
    );
    let header = access.headers.get(AUTHORIZATION).expect("credentials");
    assert_eq!(header.as_bytes(), format!("Bearer {TOKEN}").as_bytes());
    assert!(header.is_sensitive());
    assert!(
        access.identity.is_none() && access.proxy.is_none() && access.tls_server_name.is_none()
    );
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
            invalid(&kubeconfig(&format!("server: {server}"), &token())),
            "cluster.server",
            "{server}"
        );
    }
    assert_eq!(
        absent(&kubeconfig("extensions: []", &token())),
        "cluster.server"
    );
}

#[test]
fn what_is_missing_is_named() {
    let good = kubeconfig(SERVER, &token());
    assert_eq!(
        absent(&good.replace("current-context: c\n", "")),
        "current-context"
    );
    assert_eq!(
        absent(&good.replace("current-context: c\n", "current-context: other\n")),
        "current-context"
    );
    assert_eq!(
        absent(&good.replace("cluster: c,", "cluster: other,")),
        "context.cluster"
    );
    assert_eq!(
        absent(&good.replace("user: u}", "user: other}")),
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
    for text in [
        "s3cr3t-t0k3n",
        "token: [s3cr3t",
        "users: s3cr3t",
        "users:\n- name: u\n  user: {token: {s3cr3t: x}}",
        "current-context: c\ncontexts: 7\nclusters: s3cr3t",
    ] {
        assert!(
            matches!(
                error(text),
                KubeconfigError::Unreadable | KubeconfigError::Absent(_)
            ),
            "{text}"
        );
    }
    assert!(matches!(
        ShootAccess::from_kubeconfig(b"\xff\xfes3cr3t"),
        Err(KubeconfigError::Unreadable)
    ));
}

#[test]
fn an_authority_must_be_base64() {
    assert_eq!(
        invalid(&kubeconfig(
            &with("certificate-authority-data: '%%%'"),
            &token()
        )),
        "cluster.certificate-authority-data"
    );
    let broken = "certificate-authority-data: |\n      LS0t\n      LS1C\n";
    let access = read(&kubeconfig(&with(broken), &token())).expect("line breaks are no fault");
    assert_eq!(access.authorities.as_deref(), Some(b"-----B".as_slice()));
}

#[test]
fn an_empty_token_is_an_error_of_this_shoot() {
    for token in ["''", "'  '", "\"\\n\""] {
        assert_eq!(
            invalid(&kubeconfig(SERVER, &format!("token: {token}"))),
            "user.token",
            "{token}"
        );
    }
}

#[test]
fn a_token_that_no_header_can_carry_is_an_error_without_it() {
    assert_eq!(
        invalid(&kubeconfig(SERVER, "token: \"s3cr3t\\r\\nx-evil: 1\"")),
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
        absent(&kubeconfig(
            SERVER,
            &format!("client-certificate-data: {data}")
        )),
        "user.client-key-data"
    );
    assert_eq!(
        absent(&kubeconfig(SERVER, &format!("client-key-data: {data}"))),
        "user.client-certificate-data"
    );
    let both = |certificate: &str, key: &str| {
        kubeconfig(
            SERVER,
            &format!("client-certificate-data: {certificate}\n    client-key-data: {key}"),
        )
    };
    assert_eq!(invalid(&both("'%'", &data)), "user.client-certificate-data");
    assert_eq!(invalid(&both(&data, "'s3cr3t %'")), "user.client-key-data");
    assert_eq!(
        read(&both(&data, &data))
            .expect("readable so far")
            .identity
            .as_deref(),
        Some(b"s3cr3t\ns3cr3t".as_slice())
    );
}

#[test]
fn a_proxy_is_understood_and_its_scheme_checked() {
    let access =
        read(&kubeconfig(&with("proxy-url: http://proxy:3128"), &token())).expect("it can be used");
    assert_eq!(
        access.proxy.map(|proxy| proxy.to_string()).as_deref(),
        Some("http://proxy:3128/")
    );
    for proxy in ["socks5://proxy:1", "file:///x", "proxy"] {
        assert_eq!(
            invalid(&kubeconfig(&with(&format!("proxy-url: {proxy}")), &token())),
            "cluster.proxy-url",
            "{proxy}"
        );
    }
}

#[test]
fn a_server_name_of_its_own_is_understood_but_not_through_a_proxy() {
    let access = read(&kubeconfig(
        &with("tls-server-name: api.internal"),
        &token(),
    ))
    .expect("it can be used");
    assert_eq!(access.tls_server_name.as_deref(), Some("api.internal"));
    let both = with("tls-server-name: api.internal\n    proxy-url: http://proxy:3128");
    assert_eq!(
        refused(&kubeconfig(&both, &token())),
        "cluster.tls-server-name together with cluster.proxy-url"
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
        access.tls_server_name.is_none() && access.proxy.is_none() && access.authorities.is_none()
    );
}
