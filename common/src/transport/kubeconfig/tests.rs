use secrecy::ExposeSecret;

use super::*;

const SERVER: &str = "server: https://127.0.0.1:6443";

/// A kubeconfig with these lines in its cluster and in its user.
fn of(cluster: &str, user: &str) -> String {
    format!(
        "current-context: c\ncontexts:\n- {{name: c, context: {{cluster: c, user: u}}}}\n\
         clusters:\n- name: c\n  cluster:\n    {cluster}\nusers:\n- name: u\n  user:\n    {user}\n"
    )
}

fn context(text: &str) -> Result<CurrentContext, KubeconfigError> {
    CurrentContext::of(&Document::parse(text.as_bytes(), None)?)
}

/// The token of a context, or what is wrong with it.
fn token(context: Result<CurrentContext, KubeconfigError>) -> String {
    match context {
        Ok(context) => {
            let token = context.user.and_then(|user| user.value.token);
            token.map_or_else(String::new, |token| token.expose_secret().to_owned())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn only_what_the_current_context_names_must_be_readable() {
    for (section, others) in [
        (
            "users",
            "- {name: other, user: {exec: [1, 2], token: {a: b}}}\n",
        ),
        ("users", "- 7\n- {user: {token: t1}}\n- {name: [u]}\n"),
        (
            "clusters",
            "- {name: other, cluster: {server: [], insecure-skip-tls-verify: 7}}\n",
        ),
        ("clusters", "- null\n- a text\n- {name: other}\n"),
        ("contexts", "- {name: other, context: 7}\n"),
        ("contexts", "- {context: {cluster: x}}\n- []\n"),
    ] {
        let section = format!("{section}:\n");
        let text = of(SERVER, "token: t0").replace(&section, &(section.clone() + others));
        let context = context(&text);
        assert!(
            context
                .as_ref()
                .is_ok_and(|read| read.access(&["https"]).is_ok()),
            "{others}"
        );
        assert_eq!(token(context), "t0", "{others}");
    }
}

#[test]
fn an_error_names_the_field_its_line_and_what_is_wrong() {
    for (cluster, user, expected) in [
        (
            SERVER,
            "auth-provider: {name: gcp, config: null}",
            "user.auth-provider.config (line 11) is not a map",
        ),
        (
            SERVER,
            "username: it\n    exec:\n      args:\n      - a\n      - [s3cr3t]",
            "user.exec.args[1] (line 15) is not a string",
        ),
        (
            SERVER,
            "as-user-extra: {\"a\\nb\": 7}",
            "user.as-user-extra.a\\nb (line 11) is not a sequence",
        ),
        (
            SERVER,
            "as: \"s3cr3t\\n\"",
            "user.as (line 11) contains characters that an HTTP header cannot carry",
        ),
        (
            SERVER,
            "client-certificate-data: AAAA",
            "user.client-key-data is missing",
        ),
        (
            SERVER,
            "client-key-data: AAAA",
            "user.client-certificate-data is missing",
        ),
        (
            "insecure-skip-tls-verify: s3cr3t",
            "",
            "cluster.insecure-skip-tls-verify (line 7) is not a boolean",
        ),
        (
            "server: 'https://:s3cr3t@'",
            "",
            "cluster.server (line 7) is not a URL",
        ),
        ("proxy-url: ''", "", "cluster.server is missing"),
        (
            "server: https://a\n    certificate-authority-data: 's3cr3t!'",
            "",
            "cluster.certificate-authority-data (line 8) is not base64",
        ),
        (
            "server: https://a\n    certificate-authority: /no/such",
            "",
            "cluster.certificate-authority (line 8) names a file that cannot be read: No such file or directory (os error 2)",
        ),
        (
            "server: https://a\n    proxy-url: ftp://u:s3cr3t@p",
            "",
            "cluster.proxy-url (line 8) is no URL of an http, https or socks5 proxy",
        ),
        (
            "}",
            "s3cr3t",
            "it (line 7) is not YAML, or larger than any kubeconfig",
        ),
    ] {
        let text = of(cluster, user);
        let used = context(&text).and_then(|context| context.access(&["https", "http"]));
        let error = used.err().unwrap_or_else(|| panic!("it is used: {text}"));
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(!format!("{error:?}").contains("s3cr3t"), "{error:?}");
    }
}

#[test]
fn scalars_are_what_is_written() {
    for (written, read) in [
        ("007", "007"),
        ("1e3", "1e3"),
        ("1.10", "1.10"),
        ("0x1F", "0x1F"),
        ("yes", "yes"),
        ("'true'", "true"),
        ("\"a\\tb\"", "a\tb"),
        ("|\n      t0\n", "t0\n"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
    ] {
        assert_eq!(
            token(context(&of(SERVER, &format!("token: {written}")))),
            read
        );
    }
    let named = "{current-context: 7, contexts: [{name: 7, context: {cluster: 1.0, user: 0b1}}], \
                 clusters: [{name: 1.0, cluster: {}}], users: [{name: 0b1, user: {token: t}}]}";
    assert_eq!(token(context(named)), "t", "names are what is written, too");
}

#[test]
fn any_usual_encoding_is_read() {
    let text = of(SERVER, "token: t0");
    let marked = format!("\u{feff}{text}");
    let utf16 = |unit: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(unit).collect();
    for bytes in [
        marked.clone().into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        format!("---\n{text}---\n---\nusers: null\n").into_bytes(),
    ] {
        let documents = Document::parse(&bytes, None).unwrap();
        assert_eq!(token(CurrentContext::of(&documents)), "t0");
    }
}

#[test]
fn of_several_files_the_first_that_sets_a_value_wins() {
    let empty = "current-context: ''\nclusters: null\ncontexts: null\nusers: null\n";
    let user = "users: [{name: u, user: {token: first}}]\n";
    let whole = &*of(SERVER, "token: t0");
    let other = "current-context: c\ncontexts:\n- name: c\n  context: {cluster: gone, user: u}";
    for (files, expected) in [
        (&[empty, whole][..], "t0"),
        (&[user, whole], "first"),
        (&[whole, user], "t0"),
        (&[empty, "# nothing", user, whole], "first"),
        (&["current-context: c", user, whole], "first"),
        (
            &["current-context: other", whole],
            "current-context (line 1) names nothing that exists",
        ),
        (&["# nothing", "clusters: []"], "current-context is missing"),
        (
            &[other, whole],
            "context.cluster (line 4) names nothing that exists",
        ),
        (
            &[&whole.replace("name: u", "name: v")],
            "context.user (line 3) names nothing that exists",
        ),
    ] {
        let parse = |text: &&str| Document::parse(text.as_bytes(), None).unwrap();
        let documents: Vec<_> = files.iter().flat_map(parse).collect();
        assert_eq!(token(CurrentContext::of(&documents)), expected, "{files:?}");
    }
}

#[test]
fn paths_start_from_the_folder_of_their_file() {
    let user = "client-certificate: ../a.crt\n    client-key: /k\n    tokenFile: ''\n    exec: {command: ./login}";
    let text = of("certificate-authority: ca.crt", user);
    let documents = |text: &str| {
        let file = Path::new("/home/it/.kube/config");
        Document::parse(text.as_bytes(), Some(file)).unwrap()
    };
    let CurrentContext { cluster, user, .. } = CurrentContext::of(&documents(&text)).unwrap();
    let user = user.unwrap().value;
    let paths = [
        cluster.value.certificate_authority,
        user.client_certificate,
        user.client_key,
        user.token_file,
        user.exec.unwrap().command,
    ];
    let expected = "/home/it/.kube/ca.crt /home/it/.kube/../a.crt /k  /home/it/.kube/./login";
    assert_eq!(paths.map(Option::unwrap_or_default).join(" "), expected);
    let error = token(CurrentContext::of(&documents("a: b")));
    assert_eq!(
        error,
        "kubeconfig /home/it/.kube/config: current-context is missing"
    );
}

#[test]
fn an_empty_value_is_an_absent_one() {
    let cluster = "tls-server-name: ''\n    proxy-url: ''\n    certificate-authority: ''\n    certificate-authority-data: ' '";
    let user = "{token: ' ', tokenFile: '', client-certificate: '', client-key: '', client-key-data: '', username: '', as: '', as-uid: ''}";
    let context = context(&of(&format!("{SERVER}\n    {cluster}"), user)).unwrap();
    let access = context.access(&["https"]).unwrap();
    assert!(access.server_name.is_none() && access.proxy.is_none() && access.identity.is_none());
    assert!(matches!(access.trust, Trust::Kube(_)) && access.headers.is_empty());
    let user = context.user.unwrap();
    let header = crate::transport::authorization(&user).unwrap();
    assert!(header.is_none() && user.value.token_file.is_none());
}

#[test]
fn nobody_is_verified_where_that_is_asked_for_whatever_the_authorities() {
    let cluster = "certificate-authority-data: AAAA\n    insecure-skip-tls-verify: true";
    let context = context(&of(&format!("{SERVER}\n    {cluster}"), "")).unwrap();
    let access = context.access(&["https"]).unwrap();
    assert!(matches!(access.trust, Trust::Kube(config) if config.accept_invalid_certs));
}

#[test]
fn all_of_an_impersonation_is_passed_on_and_not_shown() {
    let user = "{as: someone, as-uid: '7', as-groups: [a, b], as-user-extra: {'example.org/Scopes (x)': [v, w]}}";
    let access = context(&of(SERVER, user))
        .unwrap()
        .access(&["https"])
        .unwrap();
    let shown = access.headers.iter().map(|(name, value)| {
        assert!(value.is_sensitive(), "{name}");
        format!("{name}={}", value.to_str().unwrap())
    });
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    let expected = "impersonate-extra-example.org%2fscopes%20%28x%29=v impersonate-extra-example.org%2fscopes%20%28x%29=w \
                    impersonate-group=a impersonate-group=b impersonate-uid=7 impersonate-user=someone";
    assert_eq!(shown.join(" "), expected);
}
