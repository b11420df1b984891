//! From a request to its answer.

use std::future::pending;

use bytes::Bytes;
use http::{HeaderName, Request, header};
use http_body_util::BodyExt;
use hyper::body::Body;

use crate::{
    faults::Fault,
    objects, pods,
    reply::{self, Closed, JSON, Reply, accepts_protobuf},
    requests::Record,
    route::{ApiTarget, IncomingRequest},
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
    let user = shared.tokens.user(&head.headers);
    let mut request = IncomingRequest::read(&shared.store, connection, user, head);
    shared.requests.arrived(&mut request.record);
    shared.until_not_silent().await;
    let fault = shared.faults.meet(&request.record);
    let reply = with_fault(shared, &request, body, fault).await?;
    let (number, code) = (request.record.number, reply.status().as_u16());
    shared.requests.answered(number, code);
    Ok(reply)
}

async fn with_fault(
    shared: &ServerState,
    request: &IncomingRequest,
    body: Bytes,
    fault: Option<Fault>,
) -> Result<Reply, Closed> {
    let in_protobuf = accepts_protobuf(&request.headers);
    match &fault {
        Some(Fault::Stall) => pending().await,
        Some(Fault::CloseBefore) => return Err(Closed),
        Some(Fault::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Fault::Hold(token)) => token.cancelled().await,
        Some(Fault::Status(code)) => {
            return Ok(reply::error(&of_code(*code, "scripted fault"), in_protobuf));
        }
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
            return Ok(reply);
        }
        Some(Fault::Endless { bytes, pause }) => {
            return Ok(reply::endless(in_protobuf, *bytes, *pause));
        }
        Some(Fault::Oversized(bytes)) => return Ok(reply::oversized(in_protobuf, *bytes)),
        _ => {}
    }
    let reply = authorised(shared, request, body).await;
    let mut reply = reply.unwrap_or_else(|error| reply::error(&error, in_protobuf));
    Ok(match fault {
        Some(Fault::StallAfter) => pending().await,
        Some(Fault::CloseAfter) => return Err(Closed),
        Some(Fault::Garbage) => {
            let headers = reply.headers_mut();
            headers.insert(header::CONTENT_LENGTH, GARBAGE.len().into());
            reply.map(|_| reply::full(GARBAGE))
        }
        Some(Fault::Truncate) => reply.map(reply::half),
        Some(Fault::Slow { bytes, pause }) => {
            reply.map(|body| reply::slowly(reply::in_pieces(body, bytes), pause))
        }
        _ => match shared.options.chunk {
            Some(bytes) => {
                reply.headers_mut().remove(header::CONTENT_LENGTH);
                reply.map(|body| reply::in_pieces(body, bytes))
            }
            None => reply,
        },
    })
}

async fn authorised(
    shared: &ServerState,
    request: &IncomingRequest,
    body: Bytes,
) -> Result<Reply, ApiError> {
    let user = request.user.as_ref();
    let user = user.ok_or_else(|| of_code(401, "Unauthorized"))?;
    let Some(target) = &request.target else {
        return Ok(match request.record.path.as_str() {
            "/version" => reply::whole(200, JSON, VERSION),
            _ => reply::no_page(),
        });
    };
    user.check(&narrowed(request, target)?)?;
    match target.subresource.as_str() {
        _ if !target.is_served => {
            let served = shared.store.resources();
            match served.iter().any(|one| one.is_beside(&target.resource)) {
                true => Err(nowhere()),
                false => Ok(reply::no_page()),
            }
        }
        "portforward" => pods::forward(shared, request, target),
        _ => objects::serve(shared, request, target, &body),
    }
}

/// What the rules are asked. A list narrowed to one name is a matter of that name, as in RBAC.
fn narrowed(request: &IncomingRequest, target: &ApiTarget) -> Result<Record, ApiError> {
    let mut wanted = request.record.clone();
    if wanted.name.is_empty() {
        let filter = request.query.list(target)?.filter;
        let only = filter.only_name().unwrap_or_default();
        only.clone_into(&mut wanted.name);
    }
    Ok(wanted)
}
