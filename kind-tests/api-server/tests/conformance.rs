//! The table of requests, answered in memory.

use anyhow::Result;
use api_server::conformance::{REJECTED, TestedServer, play, widgets};
use api_server::{Authority, Fault, MemoryApi, Options, User, When};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};

struct MemoryServer(MemoryApi);

impl TestedServer for MemoryServer {
    async fn send(&self, user: Option<&str>, request: Request<Vec<u8>>) -> Result<Response<Bytes>> {
        let mut request = request.map(|body| Full::new(Bytes::from(body)));
        let token = format!("Bearer {}", user.unwrap_or("admin"));
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, token.try_into()?);
        let (head, body) = self.0.answer(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    async fn compact(&self) -> Result<()> {
        self.0.store().compact();
        Ok(())
    }

    async fn reject(&self) -> Result<()> {
        let lists = When::matches(|request| {
            (&*request.user, &*request.verb, &*request.resource) == (REJECTED, "list", "configmaps")
        });
        self.0.faults().add(lists, Fault::throttle(1));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_in_memory_answers_as_the_table_says() {
    let options = Options {
        resources: vec![widgets()],
        ..Options::default()
    };
    let authority = Authority::new().unwrap();
    let server = MemoryServer(MemoryApi::start(&authority, options).await.unwrap());
    let users = [User::admin(REJECTED), User::limited("nobody", Vec::new())];
    for user in users {
        server.0.access().grant(&user.name.clone(), user);
    }
    play(&server).await.unwrap();
}
