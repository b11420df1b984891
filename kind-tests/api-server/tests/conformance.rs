//! The table of requests, answered in memory.

use api_server::conformance::{REJECTED, play, widgets};
use api_server::{Authority, Fault, MemoryApi, Options, User, When};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};

#[tokio::test(start_paused = true)]
async fn the_server_in_memory_answers_as_the_table_says() {
    let options = Options {
        resources: vec![widgets()],
        ..Options::default()
    };
    let authority = Authority::new().unwrap();
    let server = MemoryApi::start(&authority, options).await.unwrap();
    let users = [User::admin(REJECTED), User::limited("nobody", Vec::new())];
    for user in users {
        server.access().grant(&user.name.clone(), user);
    }
    let lists = When::verb("list", "configmaps");
    server.faults().add(lists, Fault::throttle(1));
    let send = async |user: Option<&str>, request: Request<Vec<u8>>| {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        let token = format!("Bearer {}", user.unwrap_or("admin"));
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, token.try_into()?);
        let (head, body) = server.answer(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    };
    let compact = async || {
        server.store().compact();
        Ok(())
    };
    play(send, compact).await.unwrap();
}
