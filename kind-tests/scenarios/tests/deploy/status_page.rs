//! The status page in a real browser: wide, as a phone, by night, in an outage. `make
//! pictures` takes the README's picture from `kind-tests/artefacts`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::agent::RunningAgent;
use testbed::page::page;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ProberConfig, ShootCluster, ShootPlan, eventually, scenario, start_prober};
use tokio::process::Command;

use crate::repository;

/// Without a window, a sandbox, which root may not have, or any talk with its maker.
const CHROMIUM: &str = "chromium --headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
    --hide-scrollbars --allow-file-access-from-files";
/// The page as wide as a screen, a README on GitHub, and a phone; and how it is there.
const LOOK: &str = r#"
    <iframe src="page.html" width="1280"></iframe>
    <iframe src="page.html" width="840"></iframe>
    <iframe src="page.html" width="390"></iframe>
    <script>
    const seen = frame => {
        const page = frame.contentDocument, all = page.documentElement;
        return {
            text: page.body.innerText,
            aside: all.scrollWidth - frame.contentWindow.innerWidth,
            height: all.scrollHeight,
            ground: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
            fetched: page.querySelectorAll("script, img, link, iframe").length,
        };
    };
    onload = () => document.body.append(JSON.stringify([...document.querySelectorAll("iframe")].map(seen)));
    </script>"#;

/// What the reader's system prefers.
const NIGHT: &str = "--blink-settings=preferredColorScheme=0";
const DAY: &str = "--blink-settings=preferredColorScheme=1";

async fn chromium(folder: &Path, args: &[&str]) -> Result<String> {
    let mut words = CHROMIUM.split_whitespace();
    let mut chromium = Command::new(words.next().context("no program")?);
    chromium
        .args(words)
        .args(args)
        .kill_on_drop(true)
        .current_dir(folder);
    chromium.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    let output = chromium.output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Looks at the page by night and by day, in every width. Whatever the window, all of it is seen
/// without moving sideways, nothing is run, and nothing fetched from elsewhere; and these words can
/// be read. Its height in a README.
async fn look(folder: &Path, prober: &RunningAgent, words: &[&str]) -> Result<u64> {
    std::fs::write(folder.join("look.html"), LOOK)?;
    let (_, page) = page(prober.log_file(), "/statusz").await?;
    std::fs::write(folder.join("page.html"), page)?;
    let mut height = None;
    for (scheme, is_white) in [(NIGHT, false), (DAY, true)] {
        let shown = chromium(folder, &[scheme, "--dump-dom", "look.html"]).await?;
        let (begin, end) = (shown.rfind("[{\"text\""), shown.rfind("}]"));
        let seen = &shown[begin.context("not seen")?..end.context("not seen")? + 2];
        let seen: Vec<Value> = serde_json::from_str(seen)?;
        for seen in &seen {
            let is_whole = seen["aside"].as_i64().is_some_and(|pixels| pixels <= 0);
            ensure!(is_whole && seen["fetched"] == 0, "{seen}");
            ensure!(
                (seen["ground"] == "rgb(255, 255, 255)") == is_white,
                "{seen}"
            );
            let text = seen["text"].to_string();
            let missing = words.iter().find(|words| !text.contains(**words));
            ensure!(missing.is_none(), "no {missing:?} in {text}");
        }
        height = seen[1]["height"].as_u64();
    }
    height.context("no height")
}

#[test]
fn status_page_is_readable_everywhere() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let prober = start_prober(&seed, ProberConfig::default()).await?;
        let shoot = ShootCluster::create(bed, &seed, "page", ShootPlan::default()).await?;
        shoot.after_probes(2).await?;
        let folder = testbed::reaper::folder("browser")?;
        shoot.nodes.cut_all();
        shoot
            .held_down(&[(KCM, "2"), (MCM, "1"), (CA, "1")])
            .await?;
        let outage = [
            "Deployment/kube-controller-manager",
            "held down by the watchdog",
            "scale_down",
            "leases expired",
            &shoot.nodes.names()[0],
        ];
        let looked = async || look(&folder, &prober, &outage).await;
        let height = eventually("the page shows the outage", looked).await?;
        // As high as the page is.
        let artefacts = repository::path("kind-tests/artefacts");
        std::fs::create_dir_all(&artefacts)?;
        let picture = format!("--screenshot={}/status-page.png", artefacts.display());
        let size = format!("--window-size=840,{height}");
        chromium(&folder, &[DAY, &size, &picture, "page.html"]).await?;
        shoot.nodes.heal_all();
        shoot.nothing_was_forbidden()
    })
}
