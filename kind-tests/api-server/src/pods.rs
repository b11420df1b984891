//! Bytes for a pod, by `pods/portforward`: to whatever listens at its podIP. A real API server sends
//! them through a kubelet.

use std::net::IpAddr;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::{
    reply::{self, Reply},
    resource::Resource,
    route::IncomingRequest,
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
    resource: &Resource,
) -> Result<Reply, ApiError> {
    let (name, store) = (&request.record.name, &shared.store);
    let pod = store.get_object(resource, &request.record.namespace, name)?;
    let ip = pod["status"]["podIP"].as_str();
    let ip = ip.and_then(|ip| ip.parse().ok());
    let ip = ip.ok_or_else(|| bad_request(format!("pod {name} does not have a host assigned")))?;
    let port = request.parameter("ports").parse();
    let port = port.map_err(|_| bad_request("no port"))?;
    let response = create_response_with_body(&request.http, || reply::full(Bytes::new()));
    let upgrade = request.http.extensions().get::<OnUpgrade>().cloned();
    let (Ok(mut response), Some(upgrade)) = (response, upgrade) else {
        let why = "unable to upgrade: missing upgrade headers in request";
        return Err(bad_request(why));
    };
    let protocol = HeaderValue::from_static("v4.channel.k8s.io");
    response
        .headers_mut()
        .insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    tokio::spawn(carry(upgrade, ip, port));
    Ok(response)
}

/// Carries bytes until either side ends.
async fn carry(upgrade: OnUpgrade, ip: IpAddr, port: u16) -> anyhow::Result<()> {
    let upgraded = TokioIo::new(upgrade.await?);
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
    let frame = |channel: u8, bytes: &[u8]| Message::binary([&[channel], bytes].concat());
    for channel in [DATA, ERROR] {
        socket.send(frame(channel, &port.to_le_bytes())).await?;
    }
    let mut pod = match TcpStream::connect((ip, port)).await {
        Ok(pod) => pod,
        Err(error) => {
            let why = frame(ERROR, error.to_string().as_bytes());
            return Ok(socket.send(why).await?);
        }
    };
    let mut buffer = [0; CHUNK];
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(message)) => if let [DATA, bytes @ ..] = &*message.into_data() {
                    pod.write_all(bytes).await?;
                },
                _ => return Ok(()),
            },
            count = pod.read(&mut buffer) => match count? {
                0 => return Ok(socket.close(None).await?),
                count => socket.send(frame(DATA, &buffer[..count])).await?,
            },
        }
    }
}
