//! Commands that do not depend on a seed's state: config files, help, the way to the seed.

use serde_json::json;

use crate::world::{ONE, World, project, run, run_in, stderr, stdout, text};

#[tokio::test]
async fn a_proxy_of_the_environment_is_left_out_for_a_seed_on_loopback() {
    let world = World::new(&[ONE]).await;
    let kubeconfig = world.files.path().join("operator");
    let words = [
        "status",
        "--kubeconfig",
        kubeconfig.to_str().expect("UTF-8"),
    ];
    // Nobody listens there.
    let proxy = ("HTTPS_PROXY", "http://127.0.0.1:1");
    text(&run_in(&[proxy], words).await);
}

#[tokio::test]
async fn a_seed_without_tls_needs_no_authorities() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    let nobody = ["SSL_CERT_FILE", "SSL_CERT_DIR"].map(|name| (name, "/dev/null"));
    for (scheme, expected) in [
        ("http", "no answer from 127.0.0.1:1: "),
        ("https", "cluster.certificate-authority-data is missing"),
    ] {
        let cluster = json!({ "server": format!("{scheme}://127.0.0.1:1") });
        let kubeconfig = json!({ "current-context": "it",
                                 "contexts": [{ "name": "it", "context": { "cluster": "it" } }],
                                 "clusters": [{ "name": "it", "cluster": cluster }] });
        std::fs::write(&file, kubeconfig.to_string()).expect("a file");
        let words = ["status", "--kubeconfig", file.to_str().expect("UTF-8")];
        let told = stderr(&run_in(&nobody, words).await);
        assert!(told.contains(expected), "{told}");
    }
}

#[tokio::test]
async fn check_config_names_every_error_with_its_place_and_takes_gardeners_files() {
    for name in ["prober", "weeder"] {
        let file = project(&format!("config/{name}.yaml"));
        let shown = text(&run(["check-config", &file]).await);
        let valid = format!("valid as the {name}'s config");
        assert!(shown.contains(&valid), "{shown}");
    }
    let wrong = "kubeConfigSecretName: ''\nprobeInterval: 30\ndependantResourceInfos: []\n";
    is_refused(
        wrong,
        &[
            "it.yaml:1:23: error: kubeConfigSecretName",
            "it.yaml:2:16: error: probeInterval: 30: expected a duration",
            "dependentResourceInfos: missing",
            // Why it is missing, and what a warning is for.
            "warning: dependantResourceInfos: unknown key, ignored (line 3",
            "refused as the prober's config, 1 warning\n",
        ],
    )
    .await;
    let bracket = "it.yaml: error: unclosed bracket '[' at line 1, column 4\n";
    is_refused("a: [\n", &[bracket]).await;
}

#[tokio::test]
async fn check_config_knows_manifests_and_former_versions() {
    let manifest = "error: it is the manifest of a \"ConfigMap\"";
    for (content, said, agent) in [
        (
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  dep-config.yaml: |\n    servicesAndDependantSelectors: {}\n",
            manifest,
            "weeder",
        ),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"a\": \"dependentResourceInfos: []\"}}",
            manifest,
            "prober",
        ),
        (
            "namespace: default\nservices:\n  etcd-main-client:\n    dependantPods: []\n",
            "warning: services: a key of versions before 1.0, which servicesAndDependantSelectors replaced, ignored (line 3, column 3)",
            "weeder",
        ),
        (
            "internalKubeConfigSecretName: a\nexternalKubeConfigSecretName: b\ndependentResourceInfos: []\n",
            "warning: internalKubeConfigSecretName: a key of versions before 1.2, which kubeConfigSecretName replaced, ignored (line 1",
            "prober",
        ),
    ] {
        let verdict = format!("refused as the {agent}'s config, ");
        is_refused(content, &[said, &verdict]).await;
    }
}

/// Fails unless `check-config` refuses a file of this content, and says all of this.
async fn is_refused(content: &str, said: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("it.yaml");
    std::fs::write(&file, content).expect("a file");
    let output = run(["check-config", file.to_str().expect("UTF-8")]).await;
    assert_eq!(output.status.code(), Some(1), "{content}");
    let shown = stdout(&output);
    for part in said {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
}

#[tokio::test]
async fn completions_and_manual_pages_know_agents_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(["completions", shell]).await);
        assert!(
            script.contains("check-config") && script.contains("enable-leader-election"),
            "{shell}: {script}"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Into a folder that is there, and into one that is not.
    for pages in [folder.path().to_owned(), folder.path().join("man/man1")] {
        let output = run(["man", pages.to_str().expect("UTF-8")]).await;
        assert!(output.status.success(), "{output:?}");
        let page =
            std::fs::read_to_string(pages.join("dependency-watchdog-prober.1")).expect("a page");
        assert!(page.contains("enable\\-leader\\-election"), "{page}");
    }
}
