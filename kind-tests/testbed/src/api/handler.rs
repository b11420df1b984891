//! From a request to its answer.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use hyper::body::Body as _;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{
    access::{Attributes, review},
    asked::Asked,
    content::{Sent, read_json},
    discovery,
    faults::Fault,
    objects,
    reply::{Accepted, Body, Closed, Reply, Wire, endless},
    requests::Record,
    route::{Query, Route, Target, route},
    shared::Shared,
    status::ApiError,
    store::REQUEST,
};

/// Answers one request, faults included. An error ends the connection.
pub(crate) async fn answer(shared: &Shared, connection: u64, request: Request<Sent>) -> Result<Response<Wire>, Closed> {
    let (head, body) = request.into_parts();
    let header = |name: header::HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let user = shared.access.user(header(header::AUTHORIZATION));
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let route = route(&shared.store, head.uri.path());
    let mut record = Record {
        at: Some(Instant::now()),
        connection,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        user: user.as_ref().map(|user| user.name.clone()).unwrap_or_default(),
        ..Record::default()
    };
    describe(&mut record, &head.method, &route, &query);
    shared.requests.arrived(&mut record);
    shared.until_not_silent().await;
    let number = record.number;
    let fault = shared.faults.meet(&record);
    let asked = Asked { user, route, query, headers: head.headers, method: head.method, record };
    let response = match fault {
        Some(Fault::Stall) => std::future::pending().await,
        Some(Fault::CloseBefore) => return Err(Closed),
        Some(Fault::StallAfter) => {
            serve(shared, &asked, body).await;
            std::future::pending().await
        }
        Some(Fault::CloseAfter) => {
            serve(shared, &asked, body).await;
            return Err(Closed);
        }
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            serve(shared, &asked, body).await.send()
        }
        Some(Fault::Hold(token)) => {
            token.cancelled().await;
            serve(shared, &asked, body).await.send()
        }
        Some(Fault::Status { code, retry_after }) => {
            let error = ApiError::of_code(code, "scripted fault").retry_after(retry_after.unwrap_or(0));
            Reply::error(&error, Accepted::parse(&asked.headers, shared.json_only).ok()).send()
        }
        Some(Fault::Answer { code, headers, body }) => free_answer(code, headers, body),
        Some(Fault::Garbage) => {
            let mut reply = serve(shared, &asked, body).await;
            reply.body = Body::Whole(Bytes::from_static(b"k8s\0\xff\xff\xff this is {neither: JSON nor protobuf"));
            reply.send()
        }
        Some(Fault::Truncate) => serve(shared, &asked, body).await.send_half(),
        Some(Fault::Slow { bytes, pause }) => serve(shared, &asked, body).await.send_slowly(bytes, pause),
        Some(Fault::Endless { bytes, pause }) => endless(bytes, pause).send(),
        Some(Fault::Oversized(bytes)) => {
            let fill = json!({"kind": "List", "filler": "x".repeat(bytes.saturating_sub(30))});
            Reply::json(200, &fill).send()
        }
        None => {
            let reply = serve(shared, &asked, body).await;
            match shared.chunk {
                Some(bytes) => reply.in_chunks(bytes).send(),
                None => reply.send(),
            }
        }
    };
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    shared.requests.answered(number, response.status().as_u16(), bytes);
    Ok(response)
}

/// Fills in what the request is about.
fn describe(record: &mut Record, method: &Method, route: &Route, query: &Query) {
    let one = |name: &str| !name.is_empty();
    let method_name = method.as_str().to_lowercase();
    record.verb = match (method, route) {
        (_, Route::SelfReview) => "create",
        (&Method::GET, Route::Resource(_)) if query.flag("watch") => "watch",
        (&Method::GET, Route::Resource(target)) if !one(&target.name) => "list",
        (&Method::POST, Route::Resource(_)) => "create",
        (&Method::PUT, Route::Resource(_)) => "update",
        (&Method::DELETE, Route::Resource(target)) if !one(&target.name) => "deletecollection",
        _ => &method_name,
    }
    .to_owned();
    match route {
        Route::Resource(target) => {
            record.resource = target.full_name();
            record.namespace.clone_from(&target.namespace);
            record.name.clone_from(&target.name);
        }
        Route::UnknownResource(name) => record.resource.clone_from(name),
        Route::SelfReview => "selfsubjectaccessreviews.authorization.k8s.io".clone_into(&mut record.resource),
        _ => {}
    }
}

fn free_answer(code: u16, headers: Vec<(String, String)>, body: Bytes) -> Response<Wire> {
    let mut response = Reply::whole(code, "application/json", body).send();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (header::HeaderName::try_from(name), value.try_into()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn serve(shared: &Shared, asked: &Asked, body: Sent) -> Reply {
    let accepted = Accepted::parse(&asked.headers, shared.json_only);
    let result = match accepted.clone() {
        Ok(accepted) => REQUEST.scope(asked.record.clone(), authorised(shared, asked, accepted, body)).await,
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| Reply::error(&error, accepted.ok()))
}

async fn authorised(shared: &Shared, asked: &Asked, accepted: Accepted, body: Sent) -> Result<Reply, ApiError> {
    let user = asked.user.as_ref().ok_or_else(|| ApiError::of_code(401, "Unauthorized"))?;
    let resources = || shared.store.resources();
    match &asked.route {
        Route::Version => Ok(Reply::json(200, &discovery::version(&shared.git_version))),
        Route::Health => Ok(Reply::text("ok")),
        Route::CoreVersions => Ok(Reply::json(200, &discovery::core_versions())),
        Route::Groups => Ok(Reply::json(200, &discovery::groups(&resources()))),
        Route::Resources(group, version) => {
            let found = discovery::resources(&resources(), group, version).ok_or_else(ApiError::nowhere)?;
            Ok(Reply::json(200, &found))
        }
        Route::SelfReview if asked.method == Method::POST => Ok(Reply::json(201, &review(user, read_json(body).await?))),
        Route::Resource(target) => {
            user.check(&attributes(asked, target)?)?;
            objects::serve(shared, asked, target, accepted, body).await
        }
        Route::UnknownResource(_) => {
            let Record { verb, resource, namespace, name, .. } = asked.record.clone();
            user.check(&Attributes { verb, resource, namespace, name })?;
            Err(ApiError::nowhere())
        }
        Route::SelfReview | Route::Nowhere => Err(ApiError::nowhere()),
    }
}

/// What the rules are asked. A list narrowed to one name is a matter of that name, as in RBAC.
fn attributes(asked: &Asked, target: &Target) -> Result<Attributes, ApiError> {
    let mut name = target.name.clone();
    if name.is_empty() && matches!(asked.record.verb.as_str(), "list" | "watch" | "deletecollection") {
        name = asked.query.list(target)?.filter.only_name().unwrap_or_default().to_owned();
    }
    let Record { verb, resource, namespace, .. } = asked.record.clone();
    Ok(Attributes { verb, resource, namespace, name })
}
