//! Commands that do not depend on a seed's state: config files, help, the way to the seed.

use serde_json::json;

use crate::world::{ONE, World, project, run, run_in, stderr, text};

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
async fn an_exec_plugin_that_fails_is_reported_without_its_credentials() {
    let folder = tempfile::tempdir().expect("a folder");
    for (script, expected) in [
        (
            "echo secret-answer; echo no login >&2; exit 3",
            "exec plugin failed (exit status: 3): no login",
        ),
        (
            "echo secret-answer: [",
            "exec plugin printed no ExecCredential",
        ),
    ] {
        let plugin = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script],
                             "env": [{ "name": "TOKEN", "value": "secret-word" }], "interactiveMode": "Never" });
        let kubeconfig = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "seed",
                                 "clusters": [{ "name": "seed", "cluster": { "server": "https://127.0.0.1:1" } }],
                                 "users": [{ "name": "seed", "user": { "exec": plugin } }],
                                 "contexts": [{ "name": "seed", "context": { "cluster": "seed", "user": "seed" } }] });
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig.to_string()).expect("a file");
        let output = run(["status", "--kubeconfig", file.to_str().expect("UTF-8")]).await;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains(expected) && !error.contains("secret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn check_config_names_every_error_with_its_place_and_takes_gardeners_files() {
    for name in ["prober", "weeder"] {
        let file = project(&format!("config/{name}.yaml"));
        let shown = text(&run(["check-config", &file]).await);
        assert!(
            shown.contains(&format!("valid as the {name}'s config")),
            "{shown}"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.yaml");
    std::fs::write(
        &file,
        "kubeConfigSecretName: ''\nprobeInterval: 30\ndependantResourceInfos: []\n",
    )
    .expect("a file");
    let output = run(["check-config", file.to_str().expect("UTF-8")]).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("wrong.yaml:1:23: error: kubeConfigSecretName"),
        "{shown}"
    );
    assert!(
        shown.contains("wrong.yaml:2:16: error: probeInterval: 30: expected a duration"),
        "{shown}"
    );
    assert!(shown.contains("dependentResourceInfos: missing"), "{shown}");
    // Why it is missing, and what a warning is for.
    assert!(
        shown.contains("warning: dependantResourceInfos: unknown key, ignored (line 3"),
        "{shown}"
    );
    assert!(
        shown.ends_with("refused as the prober's config, 1 warning\n"),
        "{shown}"
    );
    std::fs::write(&file, "a: [\n").expect("a file");
    let shown = String::from_utf8(
        run(["check-config", file.to_str().expect("UTF-8")])
            .await
            .stdout,
    )
    .expect("text");
    assert!(
        shown.contains("wrong.yaml: error: unclosed bracket '[' at line 1, column 4\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn check_config_knows_manifests_and_former_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dep-config.yaml");
    for (content, said, agent) in [
        (
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  dep-config.yaml: |\n    servicesAndDependantSelectors: {}\n",
            "error: it is the manifest of a \"ConfigMap\"",
            "weeder",
        ),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"a\": \"dependentResourceInfos: []\"}}",
            "error: it is the manifest of a \"ConfigMap\"",
            "prober",
        ),
        (
            "kind: List\nitems: []\n---\nkind: ConfigMap\n",
            "error: it is the manifest of a \"List\"",
            "prober",
        ),
        (
            "namespace: default\nservices:\n  etcd-main-client:\n    dependantPods: []\n",
            "warning: services: a key of versions before 1.0, which servicesAndDependantSelectors replaced, ignored (line 3, column 3)",
            "weeder",
        ),
        (
            "probes:\n- name: shoot-kube-apiserver\n",
            "warning: probes: a key of versions before 1.0, which ",
            "prober",
        ),
        (
            "internalKubeConfigSecretName: a\nexternalKubeConfigSecretName: b\ndependentResourceInfos: []\n",
            "warning: internalKubeConfigSecretName: a key of versions before 1.2, which kubeConfigSecretName replaced, ignored (line 1",
            "prober",
        ),
    ] {
        std::fs::write(&file, content).expect("a file");
        let output = run(["check-config", file.to_str().expect("UTF-8")]).await;
        assert_eq!(output.status.code(), Some(1), "{content}");
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains(said), "{shown}");
        let verdict = format!("refused as the {agent}'s config, ");
        let last = shown.lines().last().expect("a line");
        assert!(last.contains(&verdict), "{shown}");
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

#[tokio::test]
async fn help_of_an_operators_command_is_shown_like_that_of_an_agent() {
    for words in [["help", "explain"], ["explain", "--help"]] {
        let shown = text(&run(words).await);
        assert!(
            shown.contains("The shoot's namespace on the seed"),
            "{shown}"
        );
    }
    assert_eq!(
        text(&run(["--version"]).await),
        format!("dependency-watchdog {}\n", env!("CARGO_PKG_VERSION"))
    );
    let wrong = run(["explain"]).await;
    assert_eq!(wrong.status.code(), Some(2));
    let listed = text(&run([]).await);
    assert!(
        listed.contains("check-config") && listed.contains("prober"),
        "{listed}"
    );
}
