//! Failed handshakes in words: which of CA, certificate, key and server is wrong, and why.

use std::error::Error as StdError;
use std::io;

use chrono::{DateTime, SecondsFormat};
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, PeerMisbehaved};
use tower::BoxError;

/// The supported part of TLS. rustls leaves out the rest of TLS 1.2 on purpose.
const SUPPORTED: &str =
    "TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20, on X25519, P-256 or P-384";
/// The most names of a certificate that are listed.
const NAMES: usize = 5;

/// One line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl From<&Error> for TlsError {
    fn from(error: &Error) -> Self {
        Self(match error {
            Error::InvalidCertificate(problem) => {
                format!("the server's certificate {}", of_certificate(problem))
            }
            Error::AlertReceived(alert) => of_alert(*alert),
            Error::PeerIncompatible(_)
            | Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedCipherSuite) => {
                format!("the server and we have nothing in common; it must speak {SUPPORTED}")
            }
            Error::InvalidMessage(_) => {
                "the server does not speak TLS, or what is between alters it".to_owned()
            }
            other => other.to_string().chars().take(200).collect(),
        })
    }
}

/// An error and its causes. An I/O error that wraps another one names as its source the source of
/// that one, and so hides it.
pub fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        wrapped
            .map(|wrapped| wrapped as &(dyn StdError + 'static))
            .or_else(|| error.source())
    })
}

/// The failed handshake that is behind an error, or the error.
pub(super) fn in_words(error: BoxError) -> BoxError {
    let failed = causes(&*error).find_map(|cause| cause.downcast_ref::<Error>());
    match failed.map(TlsError::from) {
        Some(words) => words.into(),
        None => error,
    }
}

fn of_certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => {
            "is of an authority that is not trusted: not in the CA data, or without any not by the system"
                .to_owned()
        }
        CertificateError::BadSignature => {
            "is signed with another key than that of the trusted authority of this name".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            format!("expired at {}; here it is {}", at(*not_after), at(*time))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let begin = at(*not_before);
            format!("is not valid before {begin}; here it is {}", at(*time))
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "is for {}, not for {}",
            listed(presented),
            expected.to_str()
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is for another purpose than a server's (extended key usage)".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed with an algorithm or a kind of key that is not supported".to_owned()
        }
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "is an authority's (CA:TRUE), and not itself in the CA data".to_owned()
            }
            Some(reason) => format!("cannot be verified: {reason}"),
            None => "cannot be verified".to_owned(),
        },
        problem => format!("cannot be verified: {problem}"),
    }
}

/// The server's complaint, mostly about our certificate.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked,
        CertificateUnknown, DecryptError, HandshakeFailure, InsufficientSecurity, NoCertificate,
        ProtocolVersion, UnknownCA, UnrecognisedName, UnsupportedCertificate,
    };
    let why = match alert {
        HandshakeFailure | ProtocolVersion | InsufficientSecurity => {
            return format!(
                "the server ended the handshake; it must speak {SUPPORTED}, or wants another client certificate"
            );
        }
        UnrecognisedName => {
            return "the server knows no certificate for this name (server, tls-server-name)"
                .to_owned();
        }
        CertificateRequired | NoCertificate => "it demands one",
        CertificateExpired => "it has expired",
        CertificateRevoked => "it was revoked",
        UnknownCA => "it is of an authority that is unknown there",
        UnsupportedCertificate => "its kind is not supported there",
        DecryptError => "its key does not fit",
        BadCertificate => "it is missing or wrong",
        CertificateUnknown | AccessDenied => "it is not accepted",
        alert => return format!("the server ended the TLS connection: {alert:?}"),
    };
    format!("the server refuses the client certificate: {why}")
}

/// Names as webpki gives them: `DnsName("localhost")`, `IpAddress(127.0.0.1)`.
fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "no name at all".to_owned();
    }
    let plain = |name: &String| {
        let (_, name) = name.split_once('(').unwrap_or(("", name));
        name.trim_matches(['(', ')', '"']).to_owned()
    };
    let shown: Vec<_> = names.iter().take(NAMES).map(plain).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn at(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
