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

/// A key that is missing may be one that is misspelt: that is what a warning is for. A manifest and
/// a file of a former version are known, and whose they are.
const REFUSED: &str = r#"
- file: |
    kubeConfigSecretName: ''
    probeInterval: 30
    dependantResourceInfos: []
  said:
  - "it.yaml:1:23: error: kubeConfigSecretName"
  - "it.yaml:2:16: error: probeInterval: 30: expected a duration"
  - "dependentResourceInfos: missing"
  - "warning: dependantResourceInfos: unknown key, ignored (line 3"
  - "refused as the prober's config, 1 warning\n"
- file: "a: [\n"
  said: ["it.yaml: error: unclosed bracket '[' at line 1, column 4\n"]
- file: |
    apiVersion: v1
    kind: ConfigMap
    data:
      dep-config.yaml: |
        servicesAndDependantSelectors: {}
  said: ['error: it is the manifest of a "ConfigMap"', "refused as the weeder's config, "]
- file: '{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "dependentResourceInfos: []"}}'
  said: ['error: it is the manifest of a "ConfigMap"', "refused as the prober's config, "]
- file: |
    namespace: default
    services:
      etcd-main-client:
        dependantPods: []
  said:
  - "warning: services: a key of versions before 1.0, which servicesAndDependantSelectors replaced, ignored (line 3, column 3)"
  - "refused as the weeder's config, "
- file: |
    internalKubeConfigSecretName: a
    externalKubeConfigSecretName: b
    dependentResourceInfos: []
  said:
  - "warning: internalKubeConfigSecretName: a key of versions before 1.2, which kubeConfigSecretName replaced, ignored (line 1"
  - "refused as the prober's config, "
"#;

#[tokio::test]
async fn check_config_names_every_error_with_its_place_and_takes_gardeners_files() {
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
async fn completions_and_manual_pages_know_agents_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&format!("completions {shell}")).await);
        holds(&script, &["check-config", "enable-leader-election"]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Into a folder that is there, and into one that is not.
    for pages in [folder.path().to_owned(), folder.path().join("man/man1")] {
        text(&run(&format!("man {}", pages.display())).await);
        let page = std::fs::read_to_string(pages.join("dependency-watchdog-prober.1"));
        holds(&page.expect("a page"), &["enable\\-leader\\-election"]);
    }
}
