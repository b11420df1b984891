use std::path::PathBuf;

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
        let found = SeedAccess::find(flag.map(PathBuf::as_path), variable, pod);
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
        let access = SeedAccess::find(None, variable, || None)?;
        Ok::<_, anyhow::Error>(access.context.cluster.value.server)
    };
    let empty = "current-context: ''\nclusters: null\ncontexts: null\nusers: null\n";
    let other = "clusters: [{name: c, cluster: {server: 'https://other'}}]";
    let used = Some("https://127.0.0.1:6443".to_owned());
    let (_folder, paths) = files(&[empty, USED]);
    assert_eq!(server(paths).unwrap(), used, "an empty value is none");
    let (folder, mut paths) = files(&[USED, other]);
    paths.insert(0, folder.path().join("gone"));
    paths.insert(0, PathBuf::new());
    assert_eq!(
        server(paths).unwrap(),
        used,
        "what is missing is passed over"
    );
    let (_folder, paths) = files(&[other, USED]);
    assert_eq!(
        server(paths).unwrap().as_deref(),
        Some("https://other"),
        "the first entry of a name wins"
    );
    let (_folder, paths) = files(&[USED, "a: ["]);
    let broken = paths[1].display().to_string();
    let error = server(paths).unwrap_err().to_string();
    assert!(error.starts_with(&format!("kubeconfig {broken}: it (line 1) is not YAML")));
    let folder = TempDir::new().unwrap();
    let missing = vec![folder.path().join("a"), folder.path().join("b")];
    let error = server(missing).unwrap_err().to_string();
    assert_eq!(error, "KUBECONFIG names no kubeconfig that exists");
    let error = format!("{:#}", server(vec![folder.path().to_owned()]).unwrap_err());
    assert!(error.contains("cannot be read: Is a directory"), "{error}");
}
