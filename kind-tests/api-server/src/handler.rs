//! From a request to its answer.

use std::future::pending;

use bytes::Bytes;
use http::{Request, Response};

use crate::{
    access::review,
    content::{JSON, Received, read_json},
    discovery,
    faults::Fault,
    objects, pods,
    reply::{ApiAnswer, ApiReply, Closed, Wire, accepts_protobuf, endless, oversized},
    requests::Record,
    route::{ApiTarget, IncomingRequest, Route},
    shared::ServerState,
    status::{self, ApiError, nowhere, of_code},
};

/// Answers one request, faults included. An error ends the connection.
pub(crate) async fn answer(
    shared: &ServerState,
    connection: u64,
    request: Request<Received>,
) -> Result<Response<Wire>, Closed> {
    let (head, body) = request.into_parts();
    let user = shared.tokens.user(&head.headers);
    let mut request = IncomingRequest::read(&shared.store, connection, user, head);
    shared.requests.arrived(&mut request.record);
    shared.until_not_silent().await;
    let fault = shared.faults.meet(&request.record);
    let reply = with_fault(shared, &request, body, fault).await?;
    let length = reply.length.unwrap_or_default();
    shared
        .requests
        .answered(request.record.number, reply.code, length);
    Ok(reply.send())
}

async fn with_fault(
    shared: &ServerState,
    request: &IncomingRequest,
    body: Received,
    fault: Option<Fault>,
) -> Result<ApiReply, Closed> {
    let in_protobuf = accepts_protobuf(&request.headers);
    match &fault {
        Some(Fault::Stall) => pending().await,
        Some(Fault::CloseBefore) => return Err(Closed),
        Some(Fault::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Fault::Hold(token)) => token.cancelled().await,
        _ => {}
    }
    Ok(match fault {
        Some(Fault::Status { code, retry_after }) => {
            let error = scripted(code, retry_after);
            ApiReply::error(&error, in_protobuf)
        }
        Some(Fault::Answer {
            code,
            headers,
            body,
        }) => ApiReply::whole(code, JSON, body).with_headers(headers),
        Some(Fault::Endless { bytes, pause }) => endless(in_protobuf, bytes, pause),
        Some(Fault::Oversized(bytes)) => oversized(in_protobuf, bytes),
        fault => {
            let reply = ApiReply::of(authorised(shared, request, body).await, in_protobuf);
            match (fault, shared.options.chunk) {
                (Some(Fault::StallAfter), _) => pending().await,
                (Some(Fault::CloseAfter), _) => return Err(Closed),
                (Some(Fault::Garbage), _) => reply.with_body(Bytes::from_static(
                    b"k8s\0\xff\xff\xff this is {neither: JSON nor protobuf",
                )),
                (Some(Fault::Truncate), _) => reply.half(),
                (Some(Fault::Slow { bytes, pause }), _) => reply.in_pieces(bytes).slowly(pause),
                (_, Some(bytes)) => ApiReply {
                    length: None,
                    ..reply.in_pieces(bytes)
                },
                (_, None) => reply,
            }
        }
    })
}

fn scripted(code: u16, retry_after: Option<u32>) -> ApiError {
    let error = of_code(code, "scripted fault");
    match retry_after {
        Some(seconds) => status::retry_after(error, seconds),
        None => error,
    }
}

async fn authorised(
    shared: &ServerState,
    request: &IncomingRequest,
    body: Received,
) -> Result<ApiAnswer, ApiError> {
    let user = request
        .user
        .as_ref()
        .ok_or_else(|| of_code(401, "Unauthorized"))?;
    match &request.route {
        Route::Version => Ok(ApiAnswer::Json(200, discovery::version())),
        Route::Resources(group, version) => {
            let found = discovery::resources(&shared.store.resources(), group, version);
            Ok(found.map_or(ApiAnswer::NoPage, |found| ApiAnswer::Json(200, found)))
        }
        Route::SelfReview if request.record.method == "POST" => {
            let asked = read_json(&request.headers, JSON, body)?;
            Ok(ApiAnswer::Json(201, review(user, asked)))
        }
        Route::Resource(target) => {
            user.check(&narrowed(request, target)?)?;
            match target.subresource.as_str() {
                _ if !target.is_served => {
                    let served = shared.store.resources();
                    match served.iter().any(|one| one.is_beside(&target.resource)) {
                        true => Err(nowhere()),
                        false => Ok(ApiAnswer::NoPage),
                    }
                }
                "proxy" => pods::proxy(shared, request, target).await,
                "portforward" => pods::forward(shared, request, target),
                _ => objects::serve(shared, request, target, body),
            }
        }
        Route::SelfReview => Err(nowhere()),
        Route::Nowhere => Ok(ApiAnswer::NoPage),
    }
}

/// What the rules are asked. A list narrowed to one name is a matter of that name, as in RBAC.
fn narrowed(request: &IncomingRequest, target: &ApiTarget) -> Result<Record, ApiError> {
    let mut wanted = request.record.clone();
    if wanted.name.is_empty() {
        let filter = request.query.list(target)?.filter;
        filter
            .only_name()
            .unwrap_or_default()
            .clone_into(&mut wanted.name);
    }
    Ok(wanted)
}
