//! Handshakes with a server of this process, by what a kubeconfig says.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, SignatureAlgorithm, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::*;
use crate::transport::Dialer;
use crate::transport::access::ServerAccess;
use crate::transport::kubeconfig::{CurrentContext, Document};
use crate::transport::tls_error::causes;

type Algorithm = &'static SignatureAlgorithm;
const USUAL: Algorithm = &PKCS_ECDSA_P256_SHA256;

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// Longer than any handshake takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
const ADDRESS: &str = "127.0.0.1";

/// A certificate and its key.
struct Certified {
    der: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

impl Certified {
    fn new(certificate: &Certificate, key: KeyPair) -> Self {
        Self {
            der: certificate.der().clone(),
            key,
            pem: certificate.pem(),
        }
    }

    /// Certificate and key in PEM.
    fn client(&self) -> [String; 2] {
        [self.pem.clone(), self.key.serialize_pem()]
    }
}

fn key(algorithm: Algorithm) -> KeyPair {
    KeyPair::generate_for(algorithm).unwrap()
}

/// What a certificate of this name says, with these changes.
fn params(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::new([ADDRESS.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    change(&mut params);
    params
}

fn of_an_authority(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

fn expired(params: &mut CertificateParams) {
    params.not_after = date_time_ymd(2001, 1, 1);
}

fn authority(name: &str, algorithm: Algorithm) -> Issuer {
    CertifiedIssuer::self_signed(params(name, of_an_authority), key(algorithm)).unwrap()
}

fn signed(
    algorithm: Algorithm,
    issuer: &Issuer,
    change: impl FnOnce(&mut CertificateParams),
) -> Certified {
    let key = key(algorithm);
    Certified::new(&params("it", change).signed_by(&key, issuer).unwrap(), key)
}

/// A certificate that somebody has made for themselves, as `openssl req -x509` makes it.
fn by_itself(change: impl FnOnce(&mut CertificateParams)) -> Certified {
    let key = key(USUAL);
    Certified::new(&params("itself", change).self_signed(&key).unwrap(), key)
}

/// A server with this certificate, which wants clients of this authority, if any.
async fn serve(certified: &Certified, clients: Option<&Issuer>) -> SocketAddr {
    let key = PrivateKeyDer::try_from(certified.key.serialize_der()).unwrap();
    let builder = ServerConfig::builder();
    let builder = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(roots.into()).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(vec![certified.der.clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind((ADDRESS, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                stream.write_all(b"!").await.ok();
                stream.shutdown().await.ok();
            }
        }
    });
    address
}

/// A server that is no TLS server: it answers whatever comes with these bytes.
async fn answering(bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((ADDRESS, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.readable().await.ok();
            stream.write_all(&bytes).await.ok();
            // Until the client has read that and closes.
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
    });
    address
}

/// What a kubeconfig with these authorities and this client certificate leads to.
fn access(server: SocketAddr, authorities: &str, client: Option<[String; 2]>) -> ServerAccess {
    let data = |text: &str| BASE64_STANDARD.encode(text);
    let user = client.map(|client| {
        let [certificate, key] = client.map(|text| data(&text));
        format!("client-certificate-data: {certificate}, client-key-data: {key}")
    });
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://{server}', certificate-authority-data: {}}}}}]\n\
         users: [{{name: u, user: {{{}}}}}]\n",
        data(authorities),
        user.unwrap_or_default(),
    );
    let documents = Document::parse(text.as_bytes(), None).unwrap();
    let context = CurrentContext::of(&documents).unwrap();
    context.access(&["https"]).unwrap()
}

/// Connects and reads a byte, after which the server has accepted the client too.
async fn handshake(access: &ServerAccess) -> Result<(), String> {
    let connector = access
        .connector(&Dialer::default(), LIMIT)
        .map_err(|error| error.to_string())?;
    let innermost = |error: &(dyn std::error::Error + 'static)| {
        causes(error).last().map(ToString::to_string).unwrap()
    };
    let connected = connector.oneshot(access.server.clone()).await;
    let connection = connected.map_err(|error| innermost(&*error))?;
    let mut connection = connection.into_inner();
    let read = connection.read_exact(&mut [0]).await;
    read.map(drop).map_err(|error| innermost(&error))
}

/// What comes of a handshake of a server, which wants clients of an authority or none, and a client
/// that trusts these authorities.
async fn meets(
    server: &Certified,
    clients: Option<&Issuer>,
    authorities: &str,
    client: Option<[String; 2]>,
) -> Result<(), String> {
    handshake(&access(serve(server, clients).await, authorities, client)).await
}

#[tokio::test]
async fn keys_on_p_521_work_as_others_do() {
    let p521 = &PKCS_ECDSA_P521_SHA512;
    for [of_authority, of_server, of_client] in [
        [p521, p521, p521],
        [&PKCS_RSA_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519],
    ] {
        let authority = authority("an authority", of_authority);
        let [server, client] =
            [of_server, of_client].map(|algorithm| signed(algorithm, &authority, |_| ()));
        let result = meets(
            &server,
            Some(&authority),
            &authority.pem(),
            Some(client.client()),
        )
        .await;
        assert_eq!(
            result,
            Ok(()),
            "{of_authority:?} {of_server:?} {of_client:?}"
        );
    }
}

#[tokio::test]
async fn what_stands_in_the_ca_data_is_trusted_itself() {
    let unknown = authority("unknown", &PKCS_ED25519);
    let more = authority("more", &PKCS_ED25519).pem();
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for server in [
        by_itself(of_an_authority),
        by_itself(|_| ()),
        signed(&PKCS_ED25519, &unknown, |_| ()),
        signed(&PKCS_ED25519, &unknown, of_an_authority),
    ] {
        let with_breaks = server.pem.replace('\n', "\r\n");
        for authorities in [
            server.pem.clone(),
            format!("{more}{}", server.pem),
            format!("some text\n{unreadable}{with_breaks}{more}"),
        ] {
            assert_eq!(
                meets(&server, None, &authorities, None).await,
                Ok(()),
                "{authorities}"
            );
        }
    }
}

/// The key as PKCS#1 or SEC1 has it, which PKCS#8 wraps.
fn unwrapped(pkcs8: &[u8]) -> &[u8] {
    /// The content of the first value, and what follows it.
    fn split(der: &[u8]) -> (&[u8], &[u8]) {
        let (begin, length) = match der[1] {
            length @ ..=0x80 => (2, usize::from(length)),
            0x81 => (3, usize::from(der[2])),
            _ => (4, usize::from(u16::from_be_bytes([der[2], der[3]]))),
        };
        (&der[begin..begin + length], &der[begin + length..])
    }
    let (fields, _) = split(pkcs8);
    let (_, after_version) = split(fields);
    let (_, after_algorithm) = split(after_version);
    split(after_algorithm).0
}

fn pem_of(label: &str, der: &[u8]) -> String {
    let data = BASE64_STANDARD.encode(der);
    let lines: Vec<_> = data.as_bytes().chunks(64).collect();
    let lines = String::from_utf8(lines.join(&b'\n')).unwrap();
    format!("-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n")
}

#[tokio::test]
async fn a_key_is_read_by_its_content_whatever_its_label() {
    let authority = authority("an authority", USUAL);
    let address = serve(&signed(USUAL, &authority, |_| ()), Some(&authority)).await;
    let parameters = pem_of("EC PARAMETERS", b"\x06\x05\x2b\x81\x04\x00\x23");
    for algorithm in [&PKCS_RSA_SHA256, USUAL, &PKCS_ECDSA_P521_SHA512] {
        let client = signed(algorithm, &authority, |_| ());
        let pkcs8 = client.key.serialize_der();
        for der in [&*pkcs8, unwrapped(&pkcs8)] {
            for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
                let key = format!("{parameters}{}", pem_of(label, der));
                let access = access(address, &authority.pem(), Some([client.pem.clone(), key]));
                assert_eq!(
                    handshake(&access).await,
                    Ok(()),
                    "{algorithm:?} under {label}"
                );
            }
        }
    }
}

/// The first message of a server: its version of TLS and what it chose.
fn server_hello(version: u8) -> Vec<u8> {
    const AES_128_CBC: [u8; 2] = [0xc0, 0x13];
    [
        &[22, 3, version, 0, 42, 2, 0, 0, 38, 3, version][..],
        &[7; 32],
        &[0],
        &AES_128_CBC,
        &[0],
    ]
    .concat()
}

#[tokio::test]
async fn a_server_of_old_tls_is_refused_in_words() {
    let alert = |description| vec![21, 3, 3, 0, 2, 2, description];
    let old =
        "must speak TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20, on X25519, P-256 or P-384";
    let authorities = authority("an authority", &PKCS_ED25519).pem();
    for (name, answer, expected) in [
        (
            "a cipher suite with CBC only, or key exchange by RSA",
            alert(40),
            old,
        ),
        ("TLS 1.0 and 1.1 only", alert(70), old),
        ("TLS 1.1", server_hello(2), old),
        ("a cipher suite that was not offered", server_hello(3), old),
        (
            "HTTP",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec(),
            "the server does not speak TLS, or what is between alters it",
        ),
    ] {
        let access = access(answering(answer).await, &authorities, None);
        let error = handshake(&access).await.unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_failed_handshake_names_what_is_wrong_in_one_line() {
    let good = authority("an authority", USUAL);
    let named = |names: Vec<String>| {
        let params = CertificateParams::new(names).unwrap();
        move |changed: &mut CertificateParams| changed.subject_alt_names = params.subject_alt_names
    };
    let early = |params: &mut CertificateParams| {
        (params.not_before, params.not_after) =
            (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1));
    };
    let by_good = || signed(USUAL, &good, |_| ());
    let own = by_itself(of_an_authority);
    let almost = params("itself", of_an_authority)
        .self_signed(&own.key)
        .unwrap()
        .pem();
    for (server, authorities, expected) in [
        (
            by_good(),
            Some(authority("another", USUAL).pem()),
            "of an authority that is not trusted: not in the CA data, or without any not by the system",
        ),
        (
            by_good(),
            Some(authority("an authority", USUAL).pem()),
            "signed with another key than that of the trusted authority of this name",
        ),
        (
            own,
            Some(almost),
            "an authority's (CA:TRUE), and not itself in the CA data",
        ),
        // What stands in the CA data is trusted itself, but not for any name or at any time.
        (
            by_itself(named(vec!["other.example".to_owned()])),
            None,
            "for other.example, not for 127.0.0.1",
        ),
    ] {
        let authorities = authorities.unwrap_or_else(|| server.pem.clone());
        let error = meets(&server, None, &authorities, None).await.unwrap_err();
        assert_eq!(error, format!("the server's certificate is {expected}"));
    }
    for (server, expected) in [
        (
            by_itself(expired),
            "expired at 2001-01-01T00:00:00Z; here it is ",
        ),
        (
            by_itself(early),
            "is not valid before 3000-01-01T00:00:00Z; here it is ",
        ),
    ] {
        let error = meets(&server, None, &server.pem, None).await.unwrap_err();
        let expected = format!("the server's certificate {expected}");
        assert!(error.starts_with(&expected), "{error}");
    }
    for (client, why) in [
        (None, "it demands one"),
        (Some(signed(USUAL, &good, expired)), "it has expired"),
        (
            Some(signed(USUAL, &authority("unknown", &PKCS_ED25519), |_| ())),
            "it is of an authority that is unknown there",
        ),
    ] {
        let client = client.map(|client| client.client());
        let error = meets(&by_good(), Some(&good), &good.pem(), client).await;
        let refused = format!("the server refuses the client certificate: {why}");
        assert_eq!(error, Err(refused));
    }
}

#[tokio::test]
async fn a_field_without_a_usable_certificate_or_key_is_named() {
    let ca = authority("an authority", USUAL).pem();
    let client = by_itself(|_| ());
    let ([certificate, key], no_pem) = (client.client(), "no PEM".to_owned());
    let short = pem_of("PRIVATE KEY", &client.key.serialize_der()[..40]);
    let certificate_field = "user.client-certificate-data (line 4) holds no certificate in PEM";
    let key_field = "user.client-key-data (line 4)";
    let ca_field = "cluster.certificate-authority-data (line 3)";
    for (authorities, certificate, key, expected) in [
        (
            &no_pem,
            &certificate,
            &key,
            &format!("{ca_field} holds no certificate in PEM"),
        ),
        (
            &key,
            &certificate,
            &key,
            &format!("{ca_field} holds no certificate in PEM"),
        ),
        (
            &pem_of("CERTIFICATE", b"\0\0\0"),
            &certificate,
            &key,
            &format!("{ca_field} holds no certificate that can be read"),
        ),
        (&ca, &no_pem, &key, &certificate_field.to_owned()),
        (&ca, &key, &key, &certificate_field.to_owned()),
        (
            &ca,
            &certificate,
            &certificate,
            &format!("{key_field} holds no private key in PEM"),
        ),
        (
            &ca,
            &certificate,
            &pem_of("ENCRYPTED PRIVATE KEY", b"s3cr3t"),
            &format!("{key_field} holds a key that is encrypted; it must be without a passphrase"),
        ),
        (
            &ca,
            &certificate,
            &pem_of("PRIVATE KEY", b"s3cr3t"),
            &format!("{key_field} holds a private key that is broken"),
        ),
        (
            &ca,
            &certificate,
            &short,
            &format!(
                "{key_field} holds a private key that is broken or none of RSA from 2,048 bits on, ECDSA on P-256, P-384 and P-521, Ed25519"
            ),
        ),
        (
            &ca,
            &certificate,
            &self::key(USUAL).serialize_pem(),
            &format!("{key_field} is not the key of user.client-certificate-data"),
        ),
    ] {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let access = access(
            nowhere,
            authorities,
            Some([certificate.clone(), key.clone()]),
        );
        assert_eq!(handshake(&access).await.unwrap_err(), *expected);
    }
}

#[tokio::test]
async fn only_the_server_judges_a_client_certificate() {
    let authority = authority("an authority", USUAL);
    let server = signed(USUAL, &authority, |_| ());
    let [_, key] = by_itself(|_| ()).client();
    let nobodys = [pem_of("CERTIFICATE", b"\x30\x03\x02\x01\x07"), key];
    for client in [
        by_itself(expired).client(),
        by_itself(of_an_authority).client(),
        nobodys,
    ] {
        assert_eq!(
            meets(&server, None, &authority.pem(), Some(client)).await,
            Ok(())
        );
    }
}
