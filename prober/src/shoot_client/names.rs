//! Names of API servers become addresses as the system has it, by its C library.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::vec::IntoIter;

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Maximum number of look-ups at once. Each blocks a thread until the C library gives up, which takes
/// 30 s and longer while DNS is silent; of tokio's 512 threads the others are left for what else blocks.
pub(super) const LOOK_UPS: usize = 64;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct NameError(#[from] io::Error);

pub(super) async fn look_up(
    name: Name,
    permits: Arc<Semaphore>,
) -> Result<IntoIter<SocketAddr>, NameError> {
    block(permits, move || (name.as_str(), 0).to_socket_addrs()).await
}

async fn block<T: Send + 'static>(
    permits: Arc<Semaphore>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, NameError> {
    let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
    let done = spawn_blocking(move || {
        // The thread is occupied for as long, also when nobody waits for it any more.
        let _permit = permit;
        work()
    });
    Ok(done.await.map_err(io::Error::from)??)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn look_ups_nobody_waits_for_count() {
        let permits = Arc::new(Semaphore::new(2));
        let ends = [(), ()].map(|()| {
            let (end, ended) = channel::<()>();
            let work = move || ended.recv().map_err(io::Error::other);
            let given_up = block(Arc::clone(&permits), work).now_or_never();
            assert!(given_up.is_none());
            end
        });
        assert_eq!(permits.available_permits(), 0);
        let next = block(Arc::clone(&permits), || Ok(()));
        ends[0].send(()).unwrap();
        next.await.unwrap();
    }
}
