use api_server::{Authority, MemoryApi, Options};
use http::StatusCode;
use tempfile::TempDir;

use super::*;

/// Files with these contents.
fn files(contents: &[&str]) -> (TempDir, Vec<PathBuf>) {
    let folder = TempDir::new().unwrap();
    let written = contents.iter().enumerate().map(|(number, content)| {
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, content).unwrap();
        path
    });
    let paths = written.collect();
    (folder, paths)
}

const USED: &str = "{current-context: c, contexts: [{name: c, context: {cluster: c}}], \
                    clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]}";

#[test]
fn flag_variable_service_account_and_home_come_in_this_order() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let [flag, listed, at_home] =
        ["flag", "listed", "home"].map(|name| USED.replace("127.0.0.1:6443", name));
    let (folder, paths) = files(&[&flag, &listed]);
    let home = folder.path().join(".kube");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config"), at_home).unwrap();
    let servers = [
        "https://flag",
        "https://listed",
        "https://pod/",
        "https://home",
    ];
    for (missing, server) in servers.into_iter().map(Some).chain([None]).enumerate() {
        let variable = |name: &str| match name {
            "KUBECONFIG" if missing < 2 => Some(paths[1].clone().into()),
            "HOME" if missing < 4 => Some(folder.path().into()),
            _ => None,
        };
        let pod = || (missing < 3).then(|| Config::new("https://pod".parse().unwrap()));
        let flag = paths.first().filter(|_| missing < 1);
        let choice = KubeconfigChoice::path(flag.map(PathBuf::as_path));
        let found = SeedAccess::find(&choice, variable, pod);
        let found = found
            .ok()
            .and_then(|access| access.context.cluster.value.server);
        assert_eq!(found.as_deref(), server, "without the first {missing}");
    }
}

#[test]
fn a_list_of_kubeconfigs_is_read_as_by_client_go() {
    let server = |paths: Vec<PathBuf>| {
        let list = std::env::join_paths(paths).unwrap();
        let variable = |name: &str| (name == "KUBECONFIG").then(|| list.clone());
        let access = SeedAccess::find(&KubeconfigChoice::default(), variable, || None)?;
        Ok::<_, anyhow::Error>(access.context.cluster.value.server)
    };
    let (folder, mut paths) = files(&[USED]);
    paths.insert(0, folder.path().join("gone"));
    paths.insert(0, PathBuf::new());
    let used = "https://127.0.0.1:6443";
    assert_eq!(server(paths).unwrap().as_deref(), Some(used));
    let (_folder, paths) = files(&[USED, "a: ["]);
    let broken = paths[1].display().to_string();
    let error = server(paths).unwrap_err().to_string();
    assert!(error.starts_with(&format!("kubeconfig {broken}: it (line 1) is not YAML")));
    let folder = TempDir::new().unwrap();
    let missing = vec![folder.path().join("a"), folder.path().join("b")];
    let error = server(missing).unwrap_err().to_string();
    assert_eq!(error, "KUBECONFIG names no kubeconfig that exists");
}

#[test]
fn a_named_context_is_looked_for_in_kubeconfigs() {
    let other = USED
        .replace("name: c,", "name: other,")
        .replace("127.0.0.1:6443", "other");
    let other = other.replace("cluster: c}", "cluster: other}");
    let (folder, paths) = files(&[USED, &other]);
    let list = std::env::join_paths(&paths).unwrap();
    let server = |path: Option<&PathBuf>, context: &str, listed: bool| {
        let choice = KubeconfigChoice {
            path: path.cloned(),
            context: Some(context.to_owned()),
        };
        let variable = |name: &str| (listed && name == "KUBECONFIG").then(|| list.clone());
        let pod = || unreachable!("a service account is no context");
        let found = SeedAccess::find(&choice, variable, pod);
        found.map(|found| found.context.cluster.value.server.unwrap_or_default())
    };
    assert_eq!(server(None, "other", true).unwrap(), "https://other");
    assert_eq!(
        server(paths.first(), "c", true).unwrap(),
        "https://127.0.0.1:6443"
    );
    let [one, two] = ["0", "1"].map(|name| folder.path().join(name).display().to_string());
    for (path, listed, looked_in) in [
        (paths.first(), true, format!(" in kubeconfig {one}")),
        (None, true, format!(" in kubeconfig {one}, {two}")),
        (
            None,
            false,
            ": no --kubeconfig, no KUBECONFIG, no $HOME/.kube/config".to_owned(),
        ),
    ] {
        let error = server(path, "gone", listed).unwrap_err().to_string();
        assert_eq!(error, format!("there is no context \"gone\"{looked_in}"));
    }
}

#[tokio::test]
async fn an_authority_that_was_rotated_in_a_pod_is_read_again() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let [authority, before] = [(); 2].map(|()| Authority::new().unwrap());
    let options = Options {
        admin_token: "t0k3n".into(),
        ..Options::default()
    };
    let server = MemoryApi::start(&authority, options).await.unwrap();
    // As kubelets mount them.
    let (folder, files) = files(&[&before.pem(), "t0k3n\n"]);
    let mut config = Config::new(server.url().parse().unwrap());
    config.root_cert = Some(Vec::new());
    config.root_cert_file = Some(files[0].clone());
    config.auth_info.token_file = Some(files[1].display().to_string());
    // Nothing else is found.
    let nowhere = KubeconfigChoice::path(Some(&folder.path().join("none")));
    let access = SeedAccess::of_pod(config);
    let connections = Connections::new(
        access,
        nowhere,
        Dialer::default(),
        RequestCounter::default(),
    )
    .await;
    let connections = Arc::new(connections.unwrap());
    let send = || {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        Arc::clone(&connections).send(request)
    };
    send().await.expect_err("of another authority");
    std::fs::write(&files[0], authority.pem()).unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    send().await.expect_err("of what was read before");
    assert_eq!(send().await.unwrap().status(), StatusCode::OK);
}
