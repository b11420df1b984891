//! Handshakes with a server of this process.

use std::future::ready;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::*;
use crate::transport::Dialer;
use crate::transport::access::ServerAccess;
use crate::transport::tls_error::causes;

/// Longer than any handshake takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
const ADDRESS: &str = "127.0.0.1";

fn pem(field: &str, text: &str) -> Pem {
    Pem {
        field: Field::named(field),
        text: text.into(),
    }
}

fn trust(authorities: &str) -> Trust {
    Trust::Authorities(pem("cluster.certificate-authority-data", authorities))
}

fn identity(certificate: &str, key: &str) -> Identity {
    Identity {
        certificate: pem("user.client-certificate-data", certificate),
        key: pem("user.client-key-data", key),
    }
}

fn in_pem(label: &str, der: &[u8]) -> String {
    let data = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{data}\n-----END {label}-----\n")
}

/// A key of the kind that one of the words names.
fn key(words: &str) -> KeyPair {
    let kinds = [
        ("rsa", &PKCS_RSA_SHA256),
        ("p384", &PKCS_ECDSA_P384_SHA384),
        ("p521", &PKCS_ECDSA_P521_SHA512),
        ("ed25519", &PKCS_ED25519),
    ];
    let kind = kinds.iter().find(|(name, _)| words.starts_with(name));
    KeyPair::generate_for(kind.map_or(&PKCS_ECDSA_P256_SHA256, |(_, kind)| kind)).unwrap()
}

fn params(name: &str, words: &str) -> CertificateParams {
    let is_elsewhere = words.contains("elsewhere");
    let host = if is_elsewhere {
        "other.example"
    } else {
        ADDRESS
    };
    let mut params = CertificateParams::new([host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    if words.contains("authority") {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    if words.contains("expired") {
        params.not_after = date_time_ymd(2001, 1, 1);
    }
    if words.contains("early") {
        params.not_before = date_time_ymd(3000, 1, 1);
        params.not_after = date_time_ymd(3001, 1, 1);
    }
    params
}

/// Connects and reads a byte, after which the server has accepted the client too.
async fn handshake(dialer: Dialer, trust: Trust, identity: Option<Identity>) -> String {
    let access = ServerAccess {
        server: format!("https://{ADDRESS}").parse().unwrap(),
        server_name: None,
        proxy: None,
        trust,
        identity,
        headers: HeaderMap::new(),
    };
    let innermost = |error: &(dyn std::error::Error + 'static)| {
        causes(error).last().map(ToString::to_string).unwrap()
    };
    let connector = access.connector(&dialer, LIMIT).unwrap();
    match connector.oneshot(access.server).await {
        Err(error) => innermost(&*error),
        Ok(connection) => match connection.into_inner().read_exact(&mut [0]).await {
            Err(error) => innermost(&error),
            Ok(_) => "good".to_owned(),
        },
    }
}

/// A server; the CA data; whose certificates the server demands of clients; a client; and what comes
/// of their handshake, or how that begins. An authority is named by the kind of its key, `p256` is
/// the usual one and `p256 (other)` another one of its name. `itself` is the server's certificate,
/// `almost` one like it of the same key.
const HANDSHAKES: &str = "
    p256 of p256    | p256                    | -       | -               | good
    p521 of p521    | p521                    | p521    | p521 of p521    | good
    p384 of rsa     | rsa                     | rsa     | ed25519 of rsa  | good

    p256            | itself                  | -       | -               | good
    p256 authority  | itself                  | -       | -               | good
    p256 of rsa     | rsa itself              | -       | -               | good
    p256 authority of rsa | text unreadable CRLF itself p521 | - | -      | good
    p256 elsewhere  | itself                  | -       | -               | the server's certificate is for other.example, not for 127.0.0.1
    p256 expired    | itself                  | -       | -               | the server's certificate expired at 2001-01-01T00:00:00Z; here it is
    p256 early      | itself                  | -       | -               | the server's certificate is not valid before 3000-01-01T00:00:00Z; here it is
    p256 authority  | almost                  | -       | -               | the server's certificate is an authority's (CA:TRUE), and not itself in the CA data
    p256 of p256    | p521                    | -       | -               | the server's certificate is of an authority that is not trusted: not in the CA data, or without any not by the system
    p256 of p256    | p256 (other)            | -       | -               | the server's certificate is signed with another key than that of the trusted authority of this name

    p256 of p256    | p256                    | p256    | -               | the server refuses the client certificate: it demands one
    p256 of p256    | p256                    | p256    | p256 expired of p256 | the server refuses the client certificate: it has expired
    p256 of p256    | p256                    | p256    | p256 of p521    | the server refuses the client certificate: it is of an authority that is unknown there

    p256 of p256    | p256                    | -       | p256 expired    | good
    p256 of p256    | p256                    | -       | p256 authority  | good
    p256 of p256    | p256                    | -       | nothing         | good";

#[tokio::test]
async fn a_handshake_trusts_what_go_trusts_and_names_what_is_wrong_in_one_line() {
    type Issuer = CertifiedIssuer<'static, KeyPair>;
    let authorities = ["rsa", "p256", "p521", "p256 (other)"].map(|name| {
        let named = params(name.split(' ').next().unwrap(), "authority");
        (
            name,
            CertifiedIssuer::self_signed(named, key(name)).unwrap(),
        )
    });
    let authority = |name: &str| -> &Issuer {
        let found = authorities.iter().find(|(known, _)| *known == name);
        &found.unwrap_or_else(|| panic!("no authority {name}")).1
    };
    let certified = |words: &str| -> (Certificate, KeyPair) {
        let key = key(words);
        let certificate = match words.split_once(" of ") {
            Some((words, of)) => params("it", words).signed_by(&key, authority(of)),
            None => params("itself", words).self_signed(&key),
        };
        (certificate.unwrap(), key)
    };
    for row in HANDSHAKES.lines().filter(|line| !line.is_empty()) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [server, trusted, demanded, client, expected] = cells[..] else {
            panic!("{row}")
        };
        let (certificate, key) = certified(server);
        let chain = vec![certificate.der().clone()];
        let server_key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder();
        let config = if demanded == "-" {
            config.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            roots.add(authority(demanded).der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(roots.into()).build();
            config.with_client_cert_verifier(verifier.unwrap())
        };
        let config = config.with_single_cert(chain, server_key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let dialer = Dialer::new(move |_| {
            let (ours, theirs) = duplex(1 << 16);
            let accept = acceptor.accept(theirs);
            tokio::spawn(async move {
                if let Ok(mut stream) = accept.await {
                    stream.write_all(b"!").await.ok();
                    stream.shutdown().await.ok();
                }
            });
            ready(Ok(ours))
        });
        let unreadable = in_pem("CERTIFICATE", b"\0\0\0");
        let trusted = match trusted {
            "itself" => certificate.pem(),
            "almost" => params("itself", server).self_signed(&key).unwrap().pem(),
            "rsa itself" => authority("rsa").pem() + &certificate.pem(),
            "text unreadable CRLF itself p521" => {
                let lines = certificate.pem().replace('\n', "\r\n");
                format!("some text\n{unreadable}{lines}{}", authority("p521").pem())
            }
            name => authority(name).pem(),
        };
        let client = match client {
            "-" => None,
            "nothing" => Some(identity(&unreadable, &key.serialize_pem())),
            words => {
                let (certificate, key) = certified(words);
                Some(identity(&certificate.pem(), &key.serialize_pem()))
            }
        };
        let said = handshake(dialer, trust(&trusted), client).await;
        assert!(said.starts_with(expected), "{row}: {said}");
    }
}

#[tokio::test]
async fn a_server_of_old_tls_is_refused_in_words() {
    const OLD: &str =
        "must speak TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20, on X25519, P-256 or P-384";
    let alert = |description| vec![21, 3, 3, 0, 2, 2, description];
    // A server's first message: its version of TLS, and that it has chosen AES-128-CBC.
    let hello = |version| {
        let head = [22, 3, version, 0, 42, 2, 0, 0, 38, 3, version];
        [&head[..], &[7; 32], &[0, 0xc0, 0x13, 0]].concat()
    };
    let authorities = CertifiedIssuer::self_signed(params("it", "authority"), key("")).unwrap();
    for (name, answer, expected) in [
        (
            "a suite with CBC only, or key exchange by RSA",
            alert(40),
            OLD,
        ),
        ("TLS 1.0 and 1.1 only", alert(70), OLD),
        ("TLS 1.1", hello(2), OLD),
        ("a suite that was not offered", hello(3), OLD),
        (
            "HTTP",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec(),
            "the server does not speak TLS, or what is between alters it",
        ),
    ] {
        let dialer = Dialer::new(move |_| {
            let (ours, mut theirs) = duplex(1 << 16);
            let answer = answer.clone();
            tokio::spawn(async move {
                theirs.read_u8().await.ok();
                theirs.write_all(&answer).await.ok();
                // Until the client has read that and closes.
                theirs.read_to_end(&mut Vec::new()).await.ok();
            });
            ready(Ok(ours))
        });
        let error = handshake(dialer, trust(&authorities.pem()), None).await;
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn a_key_is_read_by_its_content_whatever_its_label() {
    let authority = CertifiedIssuer::self_signed(params("it", "authority"), key("")).unwrap();
    let parameters = in_pem("EC PARAMETERS", b"\x06\x05\x2b\x81\x04\x00\x23");
    // PKCS#8 begins with so many bytes, the rest is PKCS#1 or SEC1.
    for (kind, wrapping) in [("rsa", 26), ("p256", 29), ("p521", 27)] {
        let key = key(kind);
        let certificate = params("it", "").self_signed(&key).unwrap().pem();
        let pkcs8 = key.serialize_der();
        for der in [&pkcs8[..], &pkcs8[wrapping..]] {
            for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
                let identity = identity(&certificate, &(parameters.clone() + &in_pem(label, der)));
                let config = client_config(&trust(&authority.pem()), Some(&identity));
                config.unwrap_or_else(|error| panic!("{kind} as {label}: {error}"));
            }
        }
    }
}

#[test]
fn a_field_without_a_usable_certificate_or_key_is_named() {
    let key = key("");
    let good = &*params("it", "authority").self_signed(&key).unwrap().pem();
    let own = &*key.serialize_pem();
    let short = &*in_pem("PRIVATE KEY", &key.serialize_der()[..40]);
    let unreadable = &*in_pem("CERTIFICATE", b"\0\0\0");
    let [encrypted, broken] =
        ["ENCRYPTED PRIVATE KEY", "PRIVATE KEY"].map(|label| in_pem(label, b"s3cr3t"));
    let another = &*self::key("").serialize_pem();
    for (ca, certificate, key, expected) in [
        (
            "no PEM",
            good,
            own,
            "cluster.certificate-authority-data holds no certificate in PEM",
        ),
        (
            own,
            good,
            own,
            "cluster.certificate-authority-data holds no certificate in PEM",
        ),
        (
            unreadable,
            good,
            own,
            "cluster.certificate-authority-data holds no certificate that can be read",
        ),
        (
            good,
            "no PEM",
            own,
            "user.client-certificate-data holds no certificate in PEM",
        ),
        (
            good,
            own,
            own,
            "user.client-certificate-data holds no certificate in PEM",
        ),
        (
            good,
            good,
            good,
            "user.client-key-data holds no private key in PEM",
        ),
        (
            good,
            good,
            &encrypted,
            "user.client-key-data holds a key that is encrypted; it must be without a passphrase",
        ),
        (
            good,
            good,
            &broken,
            "user.client-key-data holds a private key that is broken",
        ),
        (
            good,
            good,
            short,
            "user.client-key-data holds a private key that is broken or none of RSA from 2,048 bits on, ECDSA on P-256, P-384 and P-521, Ed25519",
        ),
        (
            good,
            good,
            another,
            "user.client-key-data is not the key of user.client-certificate-data",
        ),
    ] {
        let error = client_config(&trust(ca), Some(&identity(certificate, key))).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
