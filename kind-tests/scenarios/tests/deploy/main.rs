//! What operators install, put to the test: rendered, refused, admitted, started.
//!
//! ```text
//! deploy/helm ------ helm template ----+--> Objects --> compared with each other and with what Gardener deploys
//! deploy/kustomize - kustomize build --+       |------> dry run on a real API server, pods under the restricted standard
//!                                              |------> real agents, started as their Deployments say, and every command of the pages
//!                                              '------> promtool
//! status page ------ a real Chromium: wide, as a phone, by night
//! ```
//!
//! helm and kustomize are built from their Go modules, once (`kind-tests/deployment-tools`);
//! promtool and chromium are the system's. It needs programs that the other tests do
//! not, so it is a suite of its own: `make deploy-test`.

mod alerts;
mod api_server;
mod book;
mod cluster;
mod documents;
mod gardeners;
mod pages;
mod queries;
mod rendering;
mod repository;
mod site;
mod status_page;
mod tools;
mod umbrella;
mod values;
