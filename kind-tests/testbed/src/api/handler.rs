//! From a request to its answer.

use bytes::Bytes;
use http::{Request, Response, header};
use serde_json::json;
use tokio::time::Instant;

use crate::api::{
    access::review,
    content::{JSON, Sent, read_json},
    discovery,
    faults::Fault,
    objects,
    reply::{Closed, Reply, Wire, accepts_protobuf, endless},
    requests::Record,
    route::{Asked, Query, Route, Target, describe, route},
    shared::Shared,
    status::{ApiError, nowhere, of_code, retry_after},
    store::REQUEST,
};

/// Answers one request, faults included. An error ends the connection.
pub(crate) async fn answer(
    shared: &Shared,
    connection: u64,
    request: Request<Sent>,
) -> Result<Response<Wire>, Closed> {
    let (head, body) = request.into_parts();
    let header =
        |name: header::HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let user = shared.access.user(header(header::AUTHORIZATION));
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let route = route(&shared.store, head.uri.path());
    let mut record = Record {
        at: Some(Instant::now()),
        connection,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        user: user
            .as_ref()
            .map(|user| user.name.clone())
            .unwrap_or_default(),
        ..Record::default()
    };
    describe(&mut record, &head.method, &route, &query);
    shared.requests.arrived(&mut record);
    shared.until_not_silent().await;
    let fault = shared.faults.meet(&record);
    let asked = Asked {
        user,
        route,
        query,
        headers: head.headers,
        record,
    };
    let reply = with_fault(shared, &asked, body, fault).await?;
    shared.requests.answered(
        asked.record.number,
        reply.code,
        reply.length.unwrap_or_default(),
    );
    Ok(reply.send())
}

async fn with_fault(
    shared: &Shared,
    asked: &Asked,
    body: Sent,
    fault: Option<Fault>,
) -> Result<Reply, Closed> {
    let served = serve(shared, asked, body);
    Ok(match fault {
        None => match shared.options.chunk {
            Some(bytes) => Reply {
                length: None,
                ..served.await.in_pieces(bytes)
            },
            None => served.await,
        },
        Some(Fault::Stall) => std::future::pending().await,
        Some(Fault::CloseBefore) => return Err(Closed),
        Some(Fault::StallAfter) => {
            served.await;
            std::future::pending().await
        }
        Some(Fault::CloseAfter) => {
            served.await;
            return Err(Closed);
        }
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            served.await
        }
        Some(Fault::Hold(token)) => {
            token.cancelled().await;
            served.await
        }
        Some(Fault::Status {
            code,
            retry_after: seconds,
        }) => {
            let error = of_code(code, "scripted fault");
            let error = if let Some(seconds) = seconds {
                retry_after(error, seconds)
            } else {
                error
            };
            Reply::error(
                &error,
                accepts_protobuf(&asked.headers, shared.options.json_only)
                    .is_ok_and(|accepts| accepts),
            )
        }
        Some(Fault::Answer {
            code,
            headers,
            body,
        }) => Reply::whole(code, JSON, body).with_headers(headers),
        Some(Fault::Garbage) => served.await.with_body(Bytes::from_static(
            b"k8s\0\xff\xff\xff this is {neither: JSON nor protobuf",
        )),
        Some(Fault::Truncate) => served.await.half(),
        Some(Fault::Slow { bytes, pause }) => served.await.in_pieces(bytes).slowly(pause),
        Some(Fault::Endless { bytes, pause }) => endless(bytes, pause),
        Some(Fault::Oversized(bytes)) => Reply::json(
            200,
            &json!({"kind": "List", "filler": "x".repeat(bytes.saturating_sub(30))}),
        ),
    })
}

async fn serve(shared: &Shared, asked: &Asked, body: Sent) -> Reply {
    match accepts_protobuf(&asked.headers, shared.options.json_only) {
        Ok(in_protobuf) => {
            let reply = REQUEST
                .scope(
                    asked.record.clone(),
                    authorised(shared, asked, in_protobuf, body),
                )
                .await;
            reply.unwrap_or_else(|error| Reply::error(&error, in_protobuf))
        }
        Err(error) => Reply::error(&error, false),
    }
}

async fn authorised(
    shared: &Shared,
    asked: &Asked,
    in_protobuf: bool,
    body: Sent,
) -> Result<Reply, ApiError> {
    let user = asked
        .user
        .as_ref()
        .ok_or_else(|| of_code(401, "Unauthorized"))?;
    match &asked.route {
        Route::Version => Ok(Reply::json(200, &discovery::version())),
        Route::Resources(group, version) => {
            let found = discovery::resources(&shared.store.resources(), group, version)
                .ok_or_else(nowhere)?;
            Ok(Reply::json(200, &found))
        }
        Route::SelfReview if asked.record.method == "POST" => Ok(Reply::json(
            201,
            &review(user, read_json(&asked.headers, JSON, body).await?),
        )),
        Route::Resource(target) => {
            user.check(&narrowed(asked, target)?)?;
            objects::serve(shared, asked, target, in_protobuf, body).await
        }
        Route::UnknownResource(_) => {
            user.check(&asked.record)?;
            Err(nowhere())
        }
        Route::SelfReview | Route::Nowhere => Err(nowhere()),
    }
}

/// What the rules are asked. A list narrowed to one name is a matter of that name, as in RBAC.
fn narrowed(asked: &Asked, target: &Target) -> Result<Record, ApiError> {
    let mut wanted = asked.record.clone();
    if wanted.name.is_empty() {
        wanted.name = asked
            .query
            .list(target)?
            .filter
            .only_name()
            .unwrap_or_default()
            .to_owned();
    }
    Ok(wanted)
}
