//! Commands that do not depend on a seed's state: config files, help, authorities.

use serde::Deserialize;

use crate::world::{holds, project, run, run_in, stderr, stdout, text};

#[tokio::test]
async fn a_seed_without_tls_needs_no_authorities() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let nobody = ["SSL_CERT_FILE", "SSL_CERT_DIR"].map(|name| (name, "/dev/null"));
    for (scheme, expected) in [
        ("http", "no answer from 127.0.0.1:1: "),
        ("https", "cluster.certificate-authority-data is missing"),
    ] {
        let kubeconfig = "{current-context: it, contexts: [{name: it, context: {cluster: it}}],
            clusters: [{name: it, cluster: {server: 'SCHEME://127.0.0.1:1'}}]}";
        std::fs::write(&file, kubeconfig.replace("SCHEME", scheme)).expect("a file");
        let words = format!("status --kubeconfig {}", file.display());
        holds(&stderr(&run_in(&nobody, &words).await), &[expected]);
    }
}

#[tokio::test]
async fn the_environments_proxy_is_used_unless_no_proxy_names_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let kubeconfig = "{current-context: it, contexts: [{name: it, context: {cluster: it}}],
        clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]}";
    std::fs::write(&file, kubeconfig).expect("a file");
    let words = format!("status --kubeconfig {}", file.display());
    for (no_proxy, expected) in [
        (
            "",
            "the environment's proxy is not the URL of an http proxy",
        ),
        ("10.0.0.0/8, 127.0.0.0/8", "no answer from 127.0.0.1:1: "),
    ] {
        let proxies = [
            ("HTTPS_PROXY", "socks5://user:s3cr3t@127.0.0.1:1"),
            ("NO_PROXY", no_proxy),
        ];
        let said = stderr(&run_in(&proxies, &words).await);
        holds(&said, &[expected]);
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}

/// A config file that is refused, and what is said of it.
#[derive(Deserialize)]
struct Refused {
    file: String,
    said: Vec<String>,
}

/// A key that is missing may be one that is misspelt, so those that are ignored are shown too.
const REFUSED: &str = r#"
- file: |
    kubeConfigSecretName: ''
    probeInterval: 0s
    dependantResourceInfos: []
  said:
  - 'it.yaml: error: kubeConfigSecretName: "": expected the name of a Secret'
  - 'it.yaml: error: probeInterval: "0s": expected a duration of at least 1s'
  - "it.yaml: error: dependentResourceInfos: []: expected a list of at least one resource"
  - "it.yaml: error: dependantResourceInfos: unknown key, ignored"
  - "it.yaml: refused as the prober's config\n"
- file: "probeInterval: 30\n"
  said: ['it.yaml: error: probeInterval: "30": expected a duration like', " at line 1, column 16\n"]
- file: "a: [\n"
  said: ["unclosed bracket '[' at line 1, column 4\n"]
- file: "servicesAndDependantSelectors: {}\nservices: {}\n"
  said: ["error: services: unknown key, ignored\n", "refused as the weeder's config\n"]
"#;

#[tokio::test]
async fn check_config_says_what_an_agent_would_and_takes_gardeners_files() {
    for name in ["prober", "weeder"] {
        let file = project(&format!("config/{name}.yaml"));
        let shown = text(&run(&format!("check-config {file}")).await);
        holds(&shown, &[format!("valid as the {name}'s config")]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let it = folder.path().join("it.yaml");
    for Refused { file, said } in serde_saphyr::from_str::<Vec<_>>(REFUSED).expect("YAML") {
        std::fs::write(&it, &file).expect("a file");
        let output = run(&format!("check-config {}", it.display())).await;
        assert_eq!(output.status.code(), Some(1), "{file}");
        holds(&stdout(&output), &said);
    }
}

#[tokio::test]
async fn completions_know_agents_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&format!("completions {shell}")).await);
        holds(&script, &["check-config", "enable-leader-election"]);
    }
}
