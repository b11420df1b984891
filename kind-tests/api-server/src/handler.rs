//! From a request to its answer.

use std::future::pending;

use bytes::Bytes;
use http::{HeaderName, Request};
use http_body_util::BodyExt;
use hyper::body::Body;

use crate::{
    faults::Fault,
    objects, pods,
    reply::{self, Closed, JSON, Reply},
    resource::Resource,
    route::IncomingRequest,
    shared::ServerState,
    status::{ApiError, nowhere, of_code},
};

/// Neither JSON nor protobuf.
const GARBAGE: &[u8] = b"k8s\0\xff\xff\xff this is {neither: JSON nor protobuf";

const VERSION: &str = r#"{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64"}"#;

/// Answers one request, faults included. An error ends the connection.
pub(crate) async fn answer<B: Body<Data = Bytes>>(
    shared: &ServerState,
    connection: u64,
    request: Request<B>,
) -> Result<Reply, Closed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    let request = Request::from_parts(head, body);
    let mut request = IncomingRequest::read(shared, connection, request);
    shared.requests.arrived(&mut request.record);
    shared.until_not_silent().await;
    let fault = shared.faults.meet(&request.record);
    let reply = with_fault(shared, &request, fault).await?;
    let (number, code) = (request.record.number, reply.status().as_u16());
    shared.requests.answered(number, code);
    Ok(reply)
}

async fn with_fault(
    shared: &ServerState,
    request: &IncomingRequest,
    fault: Option<Fault>,
) -> Result<Reply, Closed> {
    match &fault {
        Some(Fault::Stall) => pending().await,
        Some(Fault::CloseBefore) => return Err(Closed),
        Some(Fault::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Fault::Hold(token)) => token.cancelled().await,
        _ => {}
    }
    let reply = match &fault {
        Some(Fault::Status(code)) => Err(of_code(*code, "scripted fault")),
        Some(Fault::Answer {
            code,
            headers,
            body,
        }) => {
            let mut reply = reply::whole(*code, JSON, body.clone());
            for (name, value) in headers {
                let name = HeaderName::try_from(name).expect("the name of a header");
                let value = value.try_into().expect("the value of a header");
                reply.headers_mut().insert(name, value);
            }
            Ok(reply)
        }
        Some(Fault::Endless { .. }) => Ok(reply::endless()),
        _ => authorised(shared, request),
    }
    .unwrap_or_else(|error| reply::error(&error, request.accepts_protobuf()));
    Ok(match fault {
        Some(Fault::StallAfter) => pending().await,
        Some(Fault::CloseAfter) => return Err(Closed),
        Some(Fault::Truncate) => reply.map(reply::half),
        Some(Fault::Garbage) => reply.map(|_| reply::full(GARBAGE)),
        Some(Fault::Slow { bytes, pause } | Fault::Endless { bytes, pause }) => {
            reply.map(|body| reply::in_pieces(body, bytes, pause))
        }
        _ => reply,
    })
}

fn authorised(shared: &ServerState, request: &IncomingRequest) -> Result<Reply, ApiError> {
    let user = request.user.as_ref();
    let user = user.ok_or_else(|| of_code(401, "Unauthorized"))?;
    if request.record.path == "/version" {
        return Ok(reply::whole(200, JSON, VERSION));
    }
    if request.api_version.is_empty() {
        return Ok(reply::no_page());
    }
    let mut wanted = request.record.clone();
    if wanted.name.is_empty() {
        // A list narrowed to one name is a matter of that name, as in RBAC.
        let filter = request.list()?.filter;
        let only = filter.only_name().unwrap_or_default();
        only.clone_into(&mut wanted.name);
    }
    user.check(&wanted)?;
    let is_beside = |other: &Resource| other.api_version == request.api_version;
    match (&request.resource, request.subresource.as_str()) {
        (Some(resource), "") => objects::serve(shared, request, resource),
        (Some(resource), "portforward") => pods::forward(shared, request, resource),
        _ if shared.store.find(is_beside).is_some() => Err(nowhere()),
        _ => Ok(reply::no_page()),
    }
}
