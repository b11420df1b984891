//! The program in a root folder like the image's: it, the libraries it links, and what a kubelet
//! brings, and nothing else; as nobody, who may write nowhere.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository;
use crate::tools::{good, overlay};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use testbed::gardener::PROBE;
use testbed::installation::{command, config};
use testbed::page::{SERVED, page};
use testbed::process::Process;
use testbed::{ShootCluster, ShootPlan, agent, eventually, scenario};

/// Where a kubelet puts the credentials of a pod.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Whom the image and the Deployments run as.
const NOBODY: &str = "65532:65532";

/// The libraries that a program links, as the loader finds them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let text = good(Command::new("ldd").arg(program).output()?)?;
    let words = text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(words.map(PathBuf::from).collect())
}

/// Puts a file into the root folder under its own path, or another one, readable for everybody.
fn put(root: &Path, file: &Path, path: &Path) -> Result<()> {
    let target = root.join(path.strip_prefix("/")?);
    std::fs::create_dir_all(target.parent().context("no parent")?)?;
    std::fs::copy(file, &target).with_context(|| format!("cannot copy {}", file.display()))?;
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o555))?;
    Ok(())
}

/// The certificate authority that a kubeconfig names.
fn authority(kubeconfig: &str) -> Result<String> {
    let data = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    Ok(String::from_utf8(
        STANDARD.decode(data.context("no certificate authority")?)?,
    )?)
}

/// Every file under a folder.
fn files(folder: &Path) -> Result<Vec<String>> {
    let found = good(
        Command::new("find")
            .arg(folder)
            .args(["!", "-type", "d"])
            .output()?,
    )?;
    let mut files: Vec<String> = found.lines().map(ToOwned::to_owned).collect();
    files.sort();
    Ok(files)
}

#[test]
fn the_program_needs_nothing_but_itself_and_the_libraries_it_links() -> Result<()> {
    scenario(async |bed| {
        let objects = overlay("plain")?;
        let deployment = "dependency-watchdog-prober";
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(bed, &seed, "image", ShootPlan::default()).await?;

        let root = testbed::reaper::folder("root")?;
        let words = command(&objects, deployment)?;
        let program = agent::binary()?;
        put(&root, &program, Path::new(&words[0]))?;
        for library in libraries(&program)? {
            put(&root, &library, &library)?;
        }
        // What a kubelet brings into every container: the config, /etc/hosts, and the account's
        // token.
        let bring = |path: &str, text: &str| -> Result<()> {
            let file = tempfile::NamedTempFile::new()?;
            std::fs::write(file.path(), text)?;
            put(&root, file.path(), Path::new(path))
        };
        let quick = config(&objects, deployment)?
            .replace("probeInterval: 30s", "probeInterval: 1s\ninitialDelay: 2s");
        bring("/etc/dependency-watchdog/config/dep-config.yaml", &quick)?;
        bring("/etc/hosts", "127.0.0.1 api.shoot.example.org\n")?;
        bring(
            &format!("{ACCOUNT}/token"),
            &seed.api().token("garden", deployment).await?,
        )?;
        bring(&format!("{ACCOUNT}/namespace"), "garden")?;
        bring(
            &format!("{ACCOUNT}/ca.crt"),
            &authority(seed.plane().admin_kubeconfig())?,
        )?;
        let held = files(&root)?;
        ensure!(
            held.len() <= 1 + 5 + 5,
            "more than the program, its libraries and what a kubelet brings: {held:?}"
        );

        // Shoots are reached by name.
        let token = shoot.plane.api().token("kube-system", PROBE).await?;
        let address = shoot.proxy.address();
        let named = shoot.kubeconfig(address, &token).replace(
            &format!("    server: https://{address}"),
            &format!(
                "    tls-server-name: localhost\n    server: https://api.shoot.example.org:{}",
                address.port()
            ),
        );
        ensure!(
            named.contains("api.shoot.example.org"),
            "another kubeconfig: {named}"
        );
        shoot.write_secret(&named).await?;

        let seed_address = seed.plane().address();
        let mut args = vec![
            format!("KUBERNETES_SERVICE_HOST={}", seed_address.ip()),
            format!("KUBERNETES_SERVICE_PORT={}", seed_address.port()),
        ];
        let as_nobody = ["chroot".into(), format!("--userspec={NOBODY}")];
        // As root of a user namespace of one's own, in which there is nobody else to be.
        let as_oneself = ["unshare", "--map-root-user", "chroot"].map(Into::into);
        let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
        args.extend(if is_root {
            as_nobody.to_vec()
        } else {
            as_oneself.to_vec()
        });
        args.push(root.display().to_string());
        args.extend(words);
        args.extend(SERVED.map(Into::into));
        let log = testbed::reaper::folder("image-log")?.join("log");
        seed.set_log(log.clone());
        let mut process = Process::start("image", Path::new("env"), &args, &log)?;
        eventually("it is ready", async || {
            let (status, body) = page(&log, "/readyz")
                .await
                .with_context(|| process.tail(5))?;
            ensure!(status == 200, "{status}: {body}");
            Ok(())
        })
        .await?;
        shoot.after_probes(2).await?;
        assert_eq!(files(&root)?, held, "it has left something behind");
        process.signal(Signal::SIGTERM)?;
        let status = process.end(std::time::Duration::from_secs(5)).await?;
        ensure!(status.success(), "{status}: {}", process.tail(5));
        shoot.end().await
    })
}

#[test]
fn the_image_starts_what_the_deployments_start_as_whom_they_say() -> Result<()> {
    let file = repository::text("deploy/Containerfile")?;
    let program = command(&overlay("plain")?, "dependency-watchdog-prober")?.remove(0);
    ensure!(
        file.contains(&format!("ENTRYPOINT [\"{program}\"]")),
        "another entry point"
    );
    ensure!(file.contains(&format!("USER {NOBODY}")), "another user");
    let stages: Vec<&str> = file
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "))
        .collect();
    assert_eq!(
        stages,
        [
            "${RUST_IMAGE} AS build",
            "scratch AS program",
            "${BASE_IMAGE}"
        ]
    );
    let base = file
        .lines()
        .find_map(|line| line.strip_prefix("ARG BASE_IMAGE="))
        .context("no ARG BASE_IMAGE")?;
    ensure!(
        base.contains("distroless/cc") && base.ends_with(":nonroot"),
        "the program links libgcc_s, which images cc hold: {base}"
    );
    let toolchain = file
        .lines()
        .find_map(|line| line.strip_prefix("ARG RUST="))
        .context("no ARG RUST")?;
    let least = repository::text("Cargo.toml")?;
    let least = least
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .context("no rust-version")?
        .trim_matches('"')
        .to_owned();
    let number = |version: &str| -> Result<Vec<u32>> {
        version.split('.').map(|part| Ok(part.parse()?)).collect()
    };
    ensure!(
        number(toolchain)? >= number(&least)?,
        "the image's Rust {toolchain} is older than {least}"
    );
    Ok(())
}
