//! The status page in a real browser: wide, as a phone, by night, in an outage and without. The
//! pictures are kept in `kind-tests/artefacts/status-page`; `make pictures` takes the README's from
//! there.

use std::path::Path;

use crate::browser::Browser;
use crate::repository;
use anyhow::{Context, Result, ensure};
use testbed::page::address;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ProberConfig, ShootCluster, ShootPlan, eventually, scenario, start_prober};

/// What is looked at: a name, the window's width, the reader's scheme. GitHub shows a README's
/// pictures about as wide as that one.
const SIGHTS: [(&str, u32, &str); 4] = [
    ("wide", 1280, "light"),
    ("night", 1280, "dark"),
    ("phone", 390, "light"),
    ("readme", 840, "light"),
];

/// A window that is lower than any page, so that a page's own height can be measured.
const LOW: u32 = 100;

#[test]
fn status_page_is_readable_everywhere() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let prober = start_prober(&seed, ProberConfig::default()).await?;
        let shoot = ShootCluster::create(bed, &seed, "page", ShootPlan::default()).await?;
        shoot.after_probes(2).await?;
        let url = format!("http://{}/statusz", address(prober.log_file(), "/statusz")?);
        let browser = Browser::start(&testbed::reaper::folder("browser")?).await?;
        let pictures = repository::path("kind-tests/artefacts/status-page");

        // Whatever the window, all of it is seen without moving sideways, and what is written can
        // be read.
        look(&browser, &url, &pictures.join("healthy")).await?;
        let text = text(&browser).await?;
        ensure!(
            text.contains(&shoot.namespace) && text.contains("Nothing is held down"),
            "{text}"
        );

        shoot.nodes.cut_all();
        shoot
            .held_down(&[(KCM, "2"), (MCM, "1"), (CA, "1")])
            .await?;
        eventually("the page shows the outage", async || {
            browser.open(&url).await?;
            let text = self::text(&browser).await?;
            for expected in [
                "Deployment/kube-controller-manager",
                "held down by the watchdog",
                "scale_down",
                "leases expired",
                &shoot.nodes.names()[0],
            ] {
                ensure!(text.contains(expected), "no {expected:?} in {text}");
            }
            Ok(())
        })
        .await?;
        look(&browser, &url, &pictures.join("outage")).await?;
        // Nothing is run, nothing is fetched from elsewhere.
        let foreign = "document.querySelectorAll('script, img, link, iframe').length";
        ensure!(browser.value(foreign).await? == 0);
        let ground = "getComputedStyle(document.body).backgroundColor";
        ensure!(browser.value(ground).await? == "rgb(255, 255, 255)");
        browser.prefer("dark").await?;
        ensure!(browser.value(ground).await? != "rgb(255, 255, 255)");
        shoot.nodes.heal_all();
        shoot.end().await
    })
}

/// Looks at the page in every way. Each picture is as high as the page is.
async fn look(browser: &Browser, url: &str, pictures: &Path) -> Result<()> {
    for (name, width, scheme) in SIGHTS {
        browser.resize(width, LOW).await?;
        browser.prefer(scheme).await?;
        browser.open(url).await?;
        let height = browser
            .value("document.documentElement.scrollHeight")
            .await?
            .as_u64()
            .context("no height")?;
        browser.resize(width, height.try_into()?).await?;
        let overhang = "document.documentElement.scrollWidth - window.innerWidth";
        let overhang = browser.value(overhang).await?.as_i64();
        ensure!(
            overhang.is_some_and(|pixels| pixels <= 0),
            "{name}: {overhang:?} to the side"
        );
        browser
            .picture(&pictures.join(format!("{name}.png")))
            .await?;
    }
    Ok(())
}

async fn text(browser: &Browser) -> Result<String> {
    Ok(browser
        .value("document.body.innerText")
        .await?
        .as_str()
        .context("no text")?
        .to_owned())
}
