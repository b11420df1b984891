//! A real API server would take every rendered object, and the restricted standard every pod. The
//! chart renders what overlays do.

use anyhow::{Context, Result};
use testbed::scenario;

use crate::cluster::{dry_run, furnish, pod};
use crate::tools::{customized, overlay, overlays};

#[test]
fn api_server_takes_every_object() -> Result<()> {
    scenario(async |bed| {
        let plane = bed.start_control_plane("deploy").await?;
        let api = plane.api();
        furnish(api).await?;
        let no_ids =
            "{resources: [OURS/overlays/plain], components: [OURS/components/no-user-ids]}";
        let mut installations = vec![("no-user-ids".to_owned(), customized(no_ids)?)];
        for name in overlays()? {
            let objects = overlay(&name)?;
            installations.push((name, objects));
        }
        for (name, objects) in &installations {
            for (key, object) in objects {
                dry_run(api, object)
                    .await
                    .with_context(|| format!("{name}: {key}"))?;
                if key.starts_with("Deployment ") {
                    dry_run(api, &pod(object))
                        .await
                        .with_context(|| format!("{name}: the pod of {key}"))?;
                }
            }
        }
        Ok(())
    })
}
