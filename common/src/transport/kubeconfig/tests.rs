use secrecy::ExposeSecret;

use super::*;

const SECRET: &str = "s3cr3t";
const SERVER: &str = "server: https://127.0.0.1:6443";

fn parse(text: &str) -> Vec<Document> {
    Document::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn context(text: &str) -> Result<CurrentContext, KubeconfigError> {
    CurrentContext::of(&Document::parse(text.as_bytes(), None)?)
}

/// A kubeconfig whose current context is `c`, with more entries before it.
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

fn token(context: &CurrentContext) -> Option<&str> {
    let token = context.user.as_ref()?.value.token.as_ref()?;
    Some(token.expose_secret())
}

#[test]
fn only_what_the_current_context_names_must_be_readable() {
    for (section, other) in [
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
        let context = context(&beside(section, other)).unwrap();
        assert_eq!(token(&context), Some("t0"), "{other}");
        assert!(context.access(&["https"]).is_ok(), "{other}");
    }
}

#[test]
fn an_error_names_the_field_its_line_and_what_is_wrong() {
    let cluster = |line: &str| of(&format!("{SERVER}\n    {line}"), "token: t");
    let user = |line: &str| of(SERVER, line);
    for (text, expected) in [
        (
            user("auth-provider: {name: gcp, config: null}"),
            "user.auth-provider.config (line 10) is not a map",
        ),
        (
            user("username: it\n    exec:\n      args:\n      - a\n      - [s3cr3t]"),
            "user.exec.args[1] (line 14) is not a string",
        ),
        (
            of("insecure-skip-tls-verify: s3cr3t", ""),
            "cluster.insecure-skip-tls-verify (line 6) is not a boolean",
        ),
        (
            of("server: 'https://:s3cr3t@'", ""),
            "cluster.server (line 6) is not a URL",
        ),
        (of("proxy-url: ''", ""), "cluster.server is missing"),
        (
            cluster("certificate-authority-data: 's3cr3t!'"),
            "cluster.certificate-authority-data (line 7) is not base64",
        ),
        (
            cluster("certificate-authority: /no/such"),
            "cluster.certificate-authority (line 7) names a file that cannot be read: No such file or directory (os error 2)",
        ),
        (
            cluster("proxy-url: ftp://u:s3cr3t@p"),
            "cluster.proxy-url (line 7) is no URL of an http, https or socks5 proxy",
        ),
        (
            user("as-user-extra: {\"a\\nb\": 7}"),
            "user.as-user-extra.a\\nb (line 10) is not a sequence",
        ),
        (
            user("as: \"s3cr3t\\n\""),
            "user.as (line 10) contains characters that an HTTP header cannot carry",
        ),
        ("clusters: []".to_owned(), "current-context is missing"),
        (
            "current-context: c\ncontexts:\n- name: c\n  context: {cluster: gone}".to_owned(),
            "context.cluster (line 4) names nothing that exists",
        ),
        (
            of(SERVER, "token: t").replace("user: u}", "user: gone}"),
            "context.user (line 2) names nothing that exists",
        ),
        (
            "a: [\ns3cr3t".to_owned(),
            "it (line 1) is not YAML, or larger than any kubeconfig",
        ),
    ] {
        let used = context(&text).and_then(|context| context.access(&["https", "http"]));
        let error = used.err().unwrap_or_else(|| panic!("it is used: {text}"));
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
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
    let mut numbers = beside("users", "");
    for (text, number) in [
        ("name: c", "name: 7"),
        ("t: c", "t: 7"),
        ("cluster: c", "cluster: 7"),
        ("user: u", "user: 0b1"),
        ("name: u", "name: 0b1"),
    ] {
        numbers = numbers.replace(text, number);
    }
    assert_eq!(token(&context(&numbers).unwrap()), Some("t0"));
}

#[test]
fn any_usual_encoding_is_read() {
    let text = beside("users", "");
    let marked = format!("\u{feff}{text}");
    let utf16 =
        |unit: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    for bytes in [
        text.clone().into_bytes(),
        marked.clone().into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        format!("---\n{text}---\n---\nusers: null\n").into_bytes(),
    ] {
        let documents = Document::parse(&bytes, None).unwrap();
        assert_eq!(token(&CurrentContext::of(&documents).unwrap()), Some("t0"));
    }
    assert!(parse("# nothing\n").is_empty());
}

#[test]
fn of_several_files_the_first_that_sets_a_value_wins() {
    let empty = "current-context: ''\nclusters: null\ncontexts: null\nusers: null\n";
    let user = "users: [{name: u, user: {token: first}}]\n";
    let whole = &*beside("users", "");
    for (files, expected) in [
        (&[empty, whole][..], Ok("t0")),
        (&[user, whole], Ok("first")),
        (&[whole, user], Ok("t0")),
        (&[empty, "# nothing", user, whole], Ok("first")),
        (&["current-context: c", user, whole], Ok("first")),
        (
            &["current-context: other", whole],
            Err("current-context (line 1) names nothing that exists"),
        ),
    ] {
        let documents: Vec<_> = files.iter().flat_map(|text| parse(text)).collect();
        let context = CurrentContext::of(&documents);
        let read = context.as_ref().map(|context| token(context).unwrap());
        assert_eq!(
            read.map_err(ToString::to_string),
            expected.map_err(str::to_owned),
            "{files:?}"
        );
    }
}

#[test]
fn paths_start_from_the_folder_of_their_file() {
    let user = "client-certificate: ../a.crt\n    client-key: /k\n    tokenFile: ''\n    exec: {command: ./login}";
    let file = Path::new("/home/it/.kube/config");
    let documents = Document::parse(
        of("certificate-authority: ca.crt", user).as_bytes(),
        Some(file),
    )
    .unwrap();
    let CurrentContext { cluster, user, .. } = CurrentContext::of(&documents).unwrap();
    let user = user.unwrap().value;
    let paths = [
        cluster.value.certificate_authority,
        user.client_certificate,
        user.client_key,
        user.token_file,
        user.exec.unwrap().command,
    ];
    let expected = [
        "/home/it/.kube/ca.crt",
        "/home/it/.kube/../a.crt",
        "/k",
        "",
        "/home/it/.kube/./login",
    ];
    assert_eq!(paths.map(Option::unwrap_or_default), expected);
    let error = CurrentContext::of(&Document::parse(b"a: b", Some(file)).unwrap()).err();
    assert_eq!(
        error.unwrap().to_string(),
        "kubeconfig /home/it/.kube/config: current-context is missing"
    );
}

#[test]
fn an_empty_value_is_an_absent_one() {
    let cluster = [
        "tls-server-name: ''",
        "proxy-url: ''",
        "certificate-authority: ''",
        "certificate-authority-data: ' '",
    ];
    let user = [
        "token: ' '",
        "tokenFile: ''",
        "client-certificate: ''",
        "client-key: ''",
        "client-key-data: ''",
        "username: ''",
        "as: ''",
        "as-uid: ''",
    ];
    let cluster = format!("{SERVER}\n    {}", cluster.join("\n    "));
    let context = context(&of(&cluster, &user.join("\n    "))).unwrap();
    let access = context.access(&["https"]).unwrap();
    assert!(access.server_name.is_none() && access.proxy.is_none() && access.identity.is_none());
    assert!(matches!(access.trust, Trust::Kube(_)) && access.headers.is_empty());
    let user = context.user.unwrap();
    let header = crate::transport::authorization(&user).unwrap();
    assert!(header.is_none() && user.value.token_file.is_none());
}

#[test]
fn all_of_an_impersonation_is_passed_on_and_not_shown() {
    let user = "as: someone\n    as-uid: '7'\n    as-groups: [a, b]\n    as-user-extra: {'example.org/Scopes (x)': [v, w]}";
    let access = context(&of(SERVER, user))
        .unwrap()
        .access(&["https"])
        .unwrap();
    for (name, values) in [
        ("impersonate-user", &["someone"][..]),
        ("impersonate-uid", &["7"]),
        ("impersonate-group", &["a", "b"]),
        (
            "impersonate-extra-example.org%2Fscopes%20%28x%29",
            &["v", "w"],
        ),
    ] {
        assert!(access.headers.get_all(name).iter().eq(values), "{name}");
    }
    assert!(access.headers.values().all(|value| value.is_sensitive()));
}
