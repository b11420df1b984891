//! DNS servers on loopback that answer every query as a test wants.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::net::xfer::Protocol;
use hickory_server::proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::{A, TXT};
use hickory_server::proto::rr::{RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use parking_lot::Mutex;
use tokio::net::{TcpListener, UdpSocket};

/// How the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// TXT records, each of several strings.
    Text(Vec<Vec<String>>),
    /// TXT records, truncated unless the query comes over TCP.
    CutOff(Vec<Vec<String>>),
    /// Truncated, also over TCP.
    CutOffAlways,
    /// NXDOMAIN.
    NoName,
    /// The name is there, and has no TXT record.
    NoRecord,
    /// An address in the place of a TXT record.
    Address,
    /// 127.0.0.1, and a TXT record of one string: of every name.
    Loopback(String),
    /// SERVFAIL.
    Failure,
    /// REFUSED.
    Refused,
    /// Nothing at all.
    Silence,
}

impl Reply {
    /// One record of one string.
    pub fn text(value: &str) -> Self {
        Self::Text(vec![vec![value.to_owned()]])
    }
}

/// Ends when it is dropped.
pub struct Dns {
    address: SocketAddr,
    script: DnsScript,
    _server: Server<DnsScript>,
}

/// The answer, and the names that were asked for, lower case, in the order of the queries.
#[derive(Clone)]
struct DnsScript(Arc<Mutex<(Reply, Vec<String>)>>);

impl Dns {
    /// A server that answers in this way at a port of its own, over UDP and TCP.
    pub async fn start(reply: Reply) -> Result<Self> {
        // A port that both protocols have free.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            if let Ok(tcp) = TcpListener::bind(udp.local_addr()?).await {
                break (udp, tcp);
            }
        };
        Self::serve(reply, udp, tcp)
    }

    /// A server at this address.
    pub async fn start_at(address: SocketAddr, reply: Reply) -> Result<Self> {
        let udp = UdpSocket::bind(address).await?;
        Self::serve(reply, udp, TcpListener::bind(address).await?)
    }

    fn serve(reply: Reply, udp: UdpSocket, tcp: TcpListener) -> Result<Self> {
        let address = udp.local_addr()?;
        let script = DnsScript(Arc::new(Mutex::new((reply, Vec::new()))));
        let mut server = Server::new(script.clone());
        server.register_socket(udp);
        server.register_listener(tcp, Duration::from_secs(5), 32);
        Ok(Self {
            address,
            script,
            _server: server,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The names of all queries so far, in lower case.
    pub fn asked(&self) -> Vec<String> {
        self.script.0.lock().1.clone()
    }
}

#[async_trait]
impl RequestHandler for DnsScript {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut to: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        let nothing = ResponseInfo::from(Header {
            metadata,
            counts: HeaderCounts::default(),
        });
        let Ok(info) = request.request_info() else {
            return nothing;
        };
        let name = info.query.original().name().clone();
        let reply = {
            let (reply, asked) = &mut *self.0.lock();
            asked.push(name.to_ascii().to_lowercase());
            reply.clone()
        };
        let over_tcp = request.protocol() == Protocol::Tcp;
        let mut answers = Vec::new();
        let mut records = |all: Vec<RData>| {
            let record = |data| Record::from_rdata(name.clone(), 300, data);
            answers.extend(all.into_iter().map(record));
        };
        let texts = |texts: Vec<Vec<String>>| {
            let text = |strings| RData::TXT(TXT::new(strings));
            texts.into_iter().map(text).collect()
        };
        let here = || RData::A(A(Ipv4Addr::LOCALHOST));
        match reply {
            Reply::Silence => return nothing,
            Reply::Text(all) => records(texts(all)),
            Reply::CutOff(all) if over_tcp => records(texts(all)),
            Reply::CutOff(_) | Reply::CutOffAlways => metadata.truncation = true,
            Reply::NoRecord => {}
            Reply::Address => records(vec![here()]),
            Reply::Loopback(text) => match info.query.query_type() {
                RecordType::A => records(vec![here()]),
                RecordType::TXT => records(texts(vec![vec![text]])),
                _ => {}
            },
            Reply::NoName => metadata.response_code = ResponseCode::NXDomain,
            Reply::Failure => metadata.response_code = ResponseCode::ServFail,
            Reply::Refused => metadata.response_code = ResponseCode::Refused,
        }
        let response = MessageResponseBuilder::from_message_request(request);
        let response = response.build(metadata, &answers, [], [], []);
        to.send_response(response).await.unwrap_or(nothing)
    }
}
