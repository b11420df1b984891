use secrecy::ExposeSecret;

use super::*;

const SECRET: &str = "s3cr3t";

fn parse(text: &str) -> Vec<Document> {
    Document::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn context(text: &str) -> Result<CurrentContext, KubeconfigError> {
    CurrentContext::of(&Document::parse(text.as_bytes(), None)?)
}

/// The error of a kubeconfig that cannot be used.
fn error(text: &str) -> String {
    let used = context(text).and_then(|context| context.access(&["https", "http"]));
    let error = used.err().unwrap_or_else(|| panic!("it is used: {text}"));
    let said = format!("{error} {error:?}");
    assert!(!said.contains(SECRET), "{said}");
    error.to_string()
}

/// A kubeconfig whose current context is `c`, with more entries beside it.
fn beside(section: &str, other: &str) -> String {
    let of = |name: &str| if name == section { other } else { "" };
    let (contexts, clusters, users) = (of("contexts"), of("clusters"), of("users"));
    format!(
        "contexts:\n{contexts}- {{name: c, context: {{cluster: c, user: u}}}}\n\
         current-context: c\n\
         clusters:\n{clusters}- cluster: {{server: 'https://127.0.0.1:6443'}}\n  name: c\n\
         users:\n{users}- user: {{token: t0}}\n  name: u\n"
    )
}

/// A kubeconfig with these lines in its cluster and in its user.
fn of(cluster: &str, user: &str) -> String {
    format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters:\n- name: c\n  cluster:\n    {cluster}\nusers:\n- name: u\n  user:\n    {user}\n"
    )
}

const SERVER: &str = "server: https://127.0.0.1:6443";

fn token(context: &CurrentContext) -> Option<&str> {
    let token = context.user.as_ref()?.value.token.as_ref()?;
    Some(token.expose_secret())
}

#[test]
fn only_what_the_current_context_names_must_be_readable() {
    for (section, other) in [
        (
            "users",
            "- {name: other, user: {auth-provider: {name: gcp, config: null}}}\n",
        ),
        (
            "users",
            "- {name: other, user: {exec: [1, 2], token: {a: b}}}\n",
        ),
        ("users", "- 7\n- {user: {token: t1}}\n- {name: [u]}\n"),
        (
            "clusters",
            "- {name: other, cluster: {server: [], insecure-skip-tls-verify: 7}}\n",
        ),
        (
            "clusters",
            "- {name: other, cluster: {certificate-authority: /gone, extensions: {}}}\n",
        ),
        ("clusters", "- null\n- a text\n- {name: other}\n"),
        ("contexts", "- {name: other, context: 7}\n"),
        (
            "contexts",
            "- {name: other, context: {cluster: {}, user: []}}\n",
        ),
        ("contexts", "- {context: {cluster: x}}\n- []\n"),
    ] {
        let context = context(&beside(section, other)).unwrap();
        assert_eq!(token(&context), Some("t0"), "{other}");
        assert!(context.access(&["https"]).is_ok(), "{other}");
    }
}

#[test]
fn an_error_names_the_field_its_line_and_what_is_wrong() {
    for (text, expected) in [
        (
            of(SERVER, "auth-provider: {name: gcp, config: null}"),
            "user.auth-provider.config (line 10) is not a map",
        ),
        (
            of(
                SERVER,
                "username: it\n    exec:\n      args:\n      - a\n      - [s3cr3t]",
            ),
            "user.exec.args[1] (line 14) is not a string",
        ),
        (
            of("insecure-skip-tls-verify: s3cr3t", "token: t"),
            "cluster.insecure-skip-tls-verify (line 6) is not a boolean",
        ),
        (
            of("# a comment\n    server: localhost:6443", "token: t"),
            "cluster.server (line 7) must begin with https:// or http://",
        ),
        (
            of("server: 'https://:s3cr3t@'", "token: t"),
            "cluster.server (line 6) is not a URL",
        ),
        (
            of("server: ''", "token: t"),
            "cluster.server (line 6) is missing",
        ),
        (of("proxy-url: ''", "token: t"), "cluster.server is missing"),
        (
            of(
                &format!("{SERVER}\n    certificate-authority-data: 's3cr3t!'"),
                "token: t",
            ),
            "cluster.certificate-authority-data (line 7) is not base64",
        ),
        (
            of(
                &format!("{SERVER}\n    certificate-authority: /no/such"),
                "token: t",
            ),
            "cluster.certificate-authority (line 7) names a file that cannot be read: \
             No such file or directory (os error 2)",
        ),
        (
            of(
                &format!("{SERVER}\n    proxy-url: ftp://u:s3cr3t@p"),
                "token: t",
            ),
            "cluster.proxy-url (line 7) is no URL of an http, https or socks5 proxy",
        ),
        (
            of(SERVER, "client-certificate-data: AAAA"),
            "user.client-key-data is missing",
        ),
        (
            of(SERVER, "as-user-extra: {\"a\\nb\": 7}"),
            "user.as-user-extra.a\\nb (line 10) is not a sequence",
        ),
        (
            of(SERVER, "as: \"s3cr3t\\n\""),
            "user.as (line 10) contains characters that an HTTP header cannot carry",
        ),
        ("clusters: []".to_owned(), "current-context is missing"),
        (
            "current-context: other\ncontexts: null".to_owned(),
            "current-context (line 1) names nothing that exists",
        ),
        (
            "current-context: c\ncontexts:\n- name: c\n  context: {cluster: gone}".to_owned(),
            "context.cluster (line 4) names nothing that exists",
        ),
        (
            "current-context: c\n\ncontexts: {}".to_owned(),
            "contexts (line 3) is not a list",
        ),
        (
            "a: [\ns3cr3t".to_owned(),
            "it (line 1) is not YAML, or larger than any kubeconfig",
        ),
        (
            "- s3cr3t".to_owned(),
            "it (line 1) is a text or a list, not a kubeconfig",
        ),
    ] {
        assert_eq!(error(&text), expected, "{text}");
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
        let text = of(SERVER, &format!("token: {written}"));
        assert_eq!(token(&context(&text).unwrap()), Some(read), "{written}");
    }
    let numbers = beside("users", "")
        .replace("name: c", "name: 7")
        .replace("t: c", "t: 7");
    let numbers = numbers
        .replace("cluster: c", "cluster: 7")
        .replace("user: u", "user: 0b1");
    let context = context(&numbers.replace("name: u", "name: 0b1")).unwrap();
    assert_eq!(token(&context), Some("t0"));
}

#[test]
fn any_usual_encoding_is_read() {
    let text = beside("users", "");
    let utf16 = |unit: fn(u16) -> [u8; 2]| {
        let text = format!("\u{feff}{text}");
        text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
    };
    for bytes in [
        text.clone().into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        format!("---\n{text}---\n---\nusers: null\n").into_bytes(),
    ] {
        let documents = Document::parse(&bytes, None).unwrap();
        assert_eq!(token(&CurrentContext::of(&documents).unwrap()), Some("t0"));
    }
    assert!(Document::parse(b"# nothing\n", None).unwrap().is_empty());
}

#[test]
fn of_several_files_the_first_that_sets_a_value_wins() {
    let first = "current-context: ''\nclusters: null\ncontexts: null\nusers: null\n";
    let user = "users: [{name: u, user: {token: first}}]\n";
    let second = beside("users", "");
    for (files, expected) in [
        (vec![first, &second], "t0"),
        (vec![user, &second], "first"),
        (vec![&second, user], "t0"),
        (vec![first, "# nothing", user, &second], "first"),
        (vec!["current-context: c", user, &second], "first"),
    ] {
        let documents: Vec<_> = files.iter().flat_map(|text| parse(text)).collect();
        let context = CurrentContext::of(&documents).unwrap();
        assert_eq!(token(&context), Some(expected), "{files:?}");
    }
    let other = parse("current-context: other").into_iter();
    let documents: Vec<_> = other.chain(parse(&second)).collect();
    let error = CurrentContext::of(&documents).err().unwrap().to_string();
    assert_eq!(error, "current-context (line 1) names nothing that exists");
}

#[test]
fn paths_start_from_the_folder_of_their_file() {
    let cluster = "certificate-authority: ca.crt";
    let user = "client-certificate: ../a.crt\n    client-key: /k\n    tokenFile: ''\n    \
                exec: {command: ./login}";
    let file = Path::new("/home/it/.kube/config");
    let documents = Document::parse(of(cluster, user).as_bytes(), Some(file)).unwrap();
    let CurrentContext { cluster, user, .. } = CurrentContext::of(&documents).unwrap();
    let user = user.unwrap().value;
    let path = |path: Option<String>| path.unwrap_or_default();
    assert_eq!(
        path(cluster.value.certificate_authority),
        "/home/it/.kube/ca.crt"
    );
    assert_eq!(path(user.client_certificate), "/home/it/.kube/../a.crt");
    assert_eq!(
        (path(user.client_key), path(user.token_file)),
        ("/k".into(), "".into())
    );
    assert_eq!(path(user.exec.unwrap().command), "/home/it/.kube/./login");
    let error = CurrentContext::of(&Document::parse(b"a: b", Some(file)).unwrap());
    assert_eq!(
        error.err().unwrap().to_string(),
        "kubeconfig /home/it/.kube/config: current-context is missing"
    );
}

#[test]
fn an_empty_value_is_an_absent_one() {
    let cluster = format!(
        "{SERVER}\n    tls-server-name: ''\n    proxy-url: ''\n    certificate-authority: ''\n    \
         certificate-authority-data: ' '"
    );
    let user = "token: ' '\n    tokenFile: ''\n    client-certificate: ''\n    client-key: ''\n    \
                client-key-data: ''\n    username: ''\n    as: ''\n    as-uid: ''";
    let context = context(&of(&cluster, user)).unwrap();
    let access = context.access(&["https"]).unwrap();
    assert!(access.server_name.is_none() && access.proxy.is_none() && access.identity.is_none());
    assert!(matches!(access.trust, Trust::Kube(_)) && access.headers.is_empty());
    let user = context.user.unwrap();
    let header = crate::transport::authorization(&user).unwrap();
    assert!(header.is_none() && user.value.token_file.is_none());
}

#[test]
fn all_of_an_impersonation_is_passed_on_and_not_shown() {
    let user = "as: someone\n    as-uid: '7'\n    as-groups: [a, b]\n    \
                as-user-extra: {'example.org/Scopes (x)': [v, w]}";
    let access = context(&of(SERVER, user))
        .unwrap()
        .access(&["https"])
        .unwrap();
    let all = |name: &str| {
        access
            .headers
            .get_all(name)
            .iter()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(all("impersonate-user"), ["someone"]);
    assert_eq!(all("impersonate-uid"), ["7"]);
    assert_eq!(all("impersonate-group"), ["a", "b"]);
    assert_eq!(
        all("impersonate-extra-example.org%2Fscopes%20%28x%29"),
        ["v", "w"]
    );
    assert!(access.headers.values().all(|value| value.is_sensitive()));
}
