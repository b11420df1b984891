//! What operators install, put to the test: rendered, refused, admitted, started, scraped.

mod alerts;
mod api_server;
mod at_work;
mod documents;
mod gardeners;
mod image;
mod on_kind;
mod rendering;
mod run_books;
mod status_page;
mod values;
