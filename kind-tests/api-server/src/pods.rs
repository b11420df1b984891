//! Bytes for a pod, by `pods/portforward`: to whatever listens at its podIP. A real API server sends
//! them through a kubelet.

use std::net::IpAddr;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::Response;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT};
use http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::{
    reply::{self, Reply},
    route::{ApiTarget, IncomingRequest},
    shared::ServerState,
    status::{ApiError, bad_request},
};

/// Channels of the first port: for its bytes, and for why there are none.
const DATA: u8 = 0;
const ERROR: u8 = 1;
const CHUNK: usize = 16 << 10;

/// Switches to a WebSocket, over which the bytes of one port go.
pub(crate) fn forward(
    shared: &ServerState,
    request: &IncomingRequest,
    target: &ApiTarget,
) -> Result<Reply, ApiError> {
    let port = request.query.get("ports");
    let address = address(shared, target, port)?;
    let key = request.headers.get(SEC_WEBSOCKET_KEY);
    let (Some(upgrade), Some(key)) = (request.upgrade.clone(), key) else {
        return Err(bad_request(
            "unable to upgrade: missing upgrade headers in request",
        ));
    };
    let accept = derive_accept_key(key.as_bytes());
    let head = Response::builder()
        .status(101)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
        .header(SEC_WEBSOCKET_ACCEPT, accept);
    tokio::spawn(bytes(upgrade, address));
    Ok(head.body(reply::full(Bytes::new())).expect("a head"))
}

/// Carries bytes until either side ends.
async fn bytes(upgrade: OnUpgrade, (ip, port): (IpAddr, u16)) -> anyhow::Result<()> {
    let upgraded = TokioIo::new(upgrade.await?);
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
    let (mut sink, mut source) = socket.split();
    let frame = |channel: u8, bytes: &[u8]| Message::binary([&[channel], bytes].concat());
    for channel in [DATA, ERROR] {
        sink.send(frame(channel, &port.to_le_bytes())).await?;
    }
    let stream = match TcpStream::connect((ip, port)).await {
        Ok(stream) => stream,
        Err(error) => {
            return Ok(sink
                .send(frame(ERROR, error.to_string().as_bytes()))
                .await?);
        }
    };
    let (mut reader, mut writer) = stream.into_split();
    let to_pod = async {
        while let Some(Ok(message)) = source.next().await {
            if let [DATA, bytes @ ..] = &*message.into_data() {
                writer.write_all(bytes).await?;
            }
        }
        anyhow::Ok(())
    };
    let from_pod = async {
        let mut buffer = [0; CHUNK];
        loop {
            match reader.read(&mut buffer).await? {
                0 => return anyhow::Ok(sink.close().await?),
                count => sink.send(frame(DATA, &buffer[..count])).await?,
            }
        }
    };
    tokio::select! {
        ended = to_pod => ended,
        ended = from_pod => ended,
    }
}

fn address(
    shared: &ServerState,
    target: &ApiTarget,
    port: &str,
) -> Result<(IpAddr, u16), ApiError> {
    let name = &target.name;
    let pod = shared
        .store
        .get_object(&target.resource, &target.namespace, name)?;
    let ip = pod.value["status"]["podIP"]
        .as_str()
        .and_then(|ip| ip.parse().ok());
    let ip = ip.ok_or_else(|| bad_request(format!("pod {name} does not have a host assigned")))?;
    let port = port.parse().map_err(|_| bad_request("no port"))?;
    Ok((ip, port))
}
