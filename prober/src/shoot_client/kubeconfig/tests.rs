use common::transport::Trust;

use super::*;

const SERVER: &str = "server: https://kube-apiserver.shoot--p--s.svc";
const TOKEN: &str = "token: s3cr3t-t0k3n";

/// A kubeconfig with these lines in its cluster and its user.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster:\n    {cluster}\n\
         users:\n- name: u\n  user:\n    {user}\n"
    )
}

/// The field that is wrong, or what the error says; it never holds a credential.
fn wrong(text: &str) -> String {
    let error = shoot_access(text.as_bytes()).err();
    let error = error.unwrap_or_else(|| panic!("it is accepted: {text}"));
    let said = format!("{error} {error:?}");
    for secret in ["s3cr3t", "p4ssw0rd"] {
        assert!(!said.contains(secret), "a credential is in {said}");
    }
    match error {
        Refused(field, _) => format!("{field} is refused"),
        KubeconfigError::Unusable(error) => error.field.name,
        Missing => error.to_string(),
    }
}

#[test]
fn gardeners_kubeconfig_is_understood() {
    // Secrets made by hand often carry line breaks.
    let more = "insecure-skip-tls-verify: false\n    certificate-authority-data: |\n      LS0t\n      LS1C";
    let text = kubeconfig(&format!("{SERVER}\n    {more}"), TOKEN);
    let access = shoot_access(text.as_bytes()).expect("it can be used");
    let server = "https://kube-apiserver.shoot--p--s.svc/";
    assert_eq!(access.server.to_string(), server);
    assert!(matches!(&access.trust, Trust::Authorities(pem) if pem.text == b"-----B"));
    assert!(access.headers[AUTHORIZATION].is_sensitive());
    assert!(access.identity.is_none() && access.proxy.is_none() && access.server_name.is_none());
}

#[test]
fn what_would_run_a_program_read_a_file_or_trust_anyone_is_refused() {
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [-c, 'touch /tmp/s3cr3t']}";
    for (cluster, user, field) in [
        ("", exec, "user.exec"),
        (
            "",
            "auth-provider: {name: gcp, config: {access-token: s3cr3t}}",
            "user.auth-provider",
        ),
        ("", "tokenFile: /var/run/secrets/s3cr3t", "user.tokenFile"),
        ("", "client-certificate: /x", "user.client-certificate"),
        ("", "client-key: /x", "user.client-key"),
        (
            "certificate-authority: /x",
            "username: it",
            "cluster.certificate-authority",
        ),
        (
            "insecure-skip-tls-verify: true",
            "username: it",
            "cluster.insecure-skip-tls-verify",
        ),
    ] {
        for token in ["", TOKEN] {
            let text = kubeconfig(
                &format!("{SERVER}\n    {cluster}"),
                &format!("{user}\n    {token}"),
            );
            assert_eq!(wrong(&text), format!("{field} is refused"));
        }
    }
}

#[test]
fn only_https_leads_to_an_api_server() {
    for server in [
        "http://a",
        "ftp://a",
        "file:///etc/passwd",
        "unix:/run/x",
        "a",
        "''",
        "data:text/plain,x",
    ] {
        let text = kubeconfig(&format!("server: {server}"), TOKEN);
        assert_eq!(wrong(&text), "cluster.server", "{server}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_unreadable_and_never_quoted() {
    let missing = "the Secret has no key \"kubeconfig\", or it is empty";
    let other_user = kubeconfig(SERVER, TOKEN).replace("user: u}", "user: other}");
    for (text, expected) in [
        ("", missing),
        (" \n\t", missing),
        ("s3cr3t-t0k3n", "it"),
        ("\ntoken: [s3cr3t", "it"),
        ("users: s3cr3t", "current-context"),
        (
            "current-context: c\ncontexts: 7\nclusters: s3cr3t",
            "contexts",
        ),
        (&kubeconfig(SERVER, "token: {s3cr3t: x}"), "user.token"),
        (&other_user, "context.user"),
    ] {
        assert_eq!(wrong(text), expected, "{text}");
    }
    let error = shoot_access(b"\xff\xfes3cr3t\x00\xd8")
        .err()
        .expect("no text");
    assert_eq!(error.to_string(), "it is not UTF-8 text");
}

#[test]
fn a_token_comes_before_a_name_and_password_unless_it_is_empty() {
    let basic = "Basic aXQ6cDRzc3cwcmQ=";
    for (user, expected) in [
        (
            "{username: it, password: p4ssw0rd, token: s3cr3t}",
            "Bearer s3cr3t",
        ),
        ("{username: it, password: p4ssw0rd}", basic),
        ("{username: it, password: p4ssw0rd, token: ''}", basic),
        ("{username: it, password: p4ssw0rd, token: \"\\n\"}", basic),
        // Blanks around a token are none of it.
        ("{token: \"s3cr3t\\n\"}", "Bearer s3cr3t"),
    ] {
        let access = shoot_access(kubeconfig(SERVER, user).as_bytes()).expect(user);
        assert_eq!(access.headers[AUTHORIZATION], expected, "{user}");
    }
    for token in ["''", "'  '", "\"\\n\"", "\"s3cr3t\\r\\nx-evil: 1\""] {
        let text = kubeconfig(SERVER, &format!("token: {token}"));
        assert_eq!(wrong(&text), "user.token", "{token}");
    }
}
