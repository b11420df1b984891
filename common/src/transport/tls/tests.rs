//! Handshakes with a server of this process, by what a kubeconfig says.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_util::client::legacy::connect::HttpConnector;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, SignatureAlgorithm, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::*;
use crate::transport::access::ServerAccess;
use crate::transport::kubeconfig::{CurrentContext, Document};
use crate::transport::tls_error::causes;

type Algorithm = &'static SignatureAlgorithm;
type Issuer = CertifiedIssuer<'static, KeyPair>;

/// Longer than any handshake takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
const ADDRESS: &str = "127.0.0.1";

/// A certificate, what is signed with its key, and both in PEM.
struct Certified {
    der: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

fn key(algorithm: Algorithm) -> KeyPair {
    KeyPair::generate_for(algorithm).unwrap()
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([ADDRESS.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(algorithm: Algorithm) -> Issuer {
    let mut params = named("an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, key(algorithm)).unwrap()
}

fn signed(params: CertificateParams, algorithm: Algorithm, issuer: &Issuer) -> Certified {
    let key = key(algorithm);
    let certificate = params.signed_by(&key, issuer).unwrap();
    Certified {
        der: certificate.der().clone(),
        key,
        pem: certificate.pem(),
    }
}

fn by_itself(params: &CertificateParams) -> Certified {
    let key = key(&PKCS_ECDSA_P256_SHA256);
    let certificate = params.self_signed(&key).unwrap();
    Certified {
        der: certificate.der().clone(),
        key,
        pem: certificate.pem(),
    }
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
fn access(server: SocketAddr, authorities: &str, client: Option<[&str; 2]>) -> ServerAccess {
    let data = |text: &str| BASE64_STANDARD.encode(text);
    let user = client.map(|[certificate, key]| {
        let [certificate, key] = [data(certificate), data(key)];
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
        .connector(HttpConnector::new(), LIMIT)
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

/// A server and a client of one authority, with keys of these kinds.
async fn mutual(of_authority: Algorithm, of_server: Algorithm, of_client: Algorithm) {
    let authority = authority(of_authority);
    let server = signed(named("a server"), of_server, &authority);
    let client = signed(named("a client"), of_client, &authority);
    let address = serve(&server, Some(&authority)).await;
    let client = [&*client.pem, &client.key.serialize_pem()];
    let result = handshake(&access(address, &authority.pem(), Some(client))).await;
    assert_eq!(
        result,
        Ok(()),
        "{of_authority:?} {of_server:?} {of_client:?}"
    );
}

#[tokio::test]
async fn keys_on_p_521_work_as_others_do() {
    let usual = &PKCS_ECDSA_P256_SHA256;
    let p521 = &PKCS_ECDSA_P521_SHA512;
    for (authority, server, client) in [
        (p521, usual, usual),
        (usual, p521, usual),
        (usual, usual, p521),
        (p521, p521, p521),
        (
            &PKCS_ECDSA_P384_SHA384,
            &PKCS_ED25519,
            &PKCS_ECDSA_P384_SHA384,
        ),
        (&PKCS_RSA_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_RSA_SHA256),
        (&PKCS_ED25519, &PKCS_RSA_SHA256, &PKCS_ED25519),
    ] {
        mutual(authority, server, client).await;
    }
}

/// A certificate that its server has made for itself, as `openssl req -x509` makes it.
fn own_authority() -> CertificateParams {
    let mut params = named("itself");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

#[tokio::test]
async fn what_stands_in_the_ca_data_is_trusted_itself() {
    let other = authority(&PKCS_ECDSA_P256_SHA256);
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let mut by_other = named("by another");
    by_other.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (name, server) in [
        ("CA:TRUE", by_itself(&own_authority())),
        ("CA:FALSE", by_itself(&named("itself"))),
        (
            "of an unknown authority",
            signed(named("x"), &PKCS_ED25519, &authority(&PKCS_ED25519)),
        ),
        (
            "CA:TRUE of an unknown authority",
            signed(by_other, &PKCS_ED25519, &other),
        ),
    ] {
        let address = serve(&server, None).await;
        let more = authority(&PKCS_ED25519).pem();
        for authorities in [
            server.pem.clone(),
            format!("{more}{}", server.pem),
            format!(
                "some text\n{unreadable}{}{more}",
                server.pem.replace('\n', "\r\n")
            ),
        ] {
            let result = handshake(&access(address, &authorities, None)).await;
            assert_eq!(result, Ok(()), "{name}");
        }
    }
}

#[tokio::test]
async fn name_and_dates_of_a_certificate_in_the_ca_data_are_checked() {
    let mut elsewhere = own_authority();
    elsewhere.subject_alt_names = CertificateParams::new(["other.example".to_owned()])
        .unwrap()
        .subject_alt_names;
    let mut expired = own_authority();
    expired.not_after = date_time_ymd(2001, 1, 1);
    let mut early = own_authority();
    early.not_before = date_time_ymd(3000, 1, 1);
    early.not_after = date_time_ymd(3001, 1, 1);
    for (params, expected) in [
        (
            elsewhere,
            "the server's certificate is for other.example, not for 127.0.0.1",
        ),
        (
            expired,
            "the server's certificate expired at 2001-01-01T00:00:00Z; here it is ",
        ),
        (
            early,
            "the server's certificate is not valid before 3000-01-01T00:00:00Z; here it is ",
        ),
    ] {
        let server = by_itself(&params);
        let address = serve(&server, None).await;
        let error = handshake(&access(address, &server.pem, None))
            .await
            .unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let server = by_itself(&own_authority());
    let address = serve(&server, None).await;
    let almost = own_authority().self_signed(&server.key).unwrap();
    let other = authority(&PKCS_ED25519).pem();
    for authorities in [almost.pem(), other] {
        let error = handshake(&access(address, &authorities, None)).await;
        assert_eq!(
            error.unwrap_err(),
            "the server's certificate is an authority's (CA:TRUE), and not itself in the CA data"
        );
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
    const LABELS: [&str; 3] = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"];
    let authority = authority(&PKCS_ECDSA_P256_SHA256);
    let server = signed(named("a server"), &PKCS_ECDSA_P256_SHA256, &authority);
    let address = serve(&server, Some(&authority)).await;
    for algorithm in [
        &PKCS_RSA_SHA256,
        &PKCS_ECDSA_P256_SHA256,
        &PKCS_ECDSA_P521_SHA512,
    ] {
        let client = signed(named("a client"), algorithm, &authority);
        let pkcs8 = client.key.serialize_der();
        for der in [&*pkcs8, unwrapped(&pkcs8)] {
            for label in LABELS {
                let parameters = pem_of("EC PARAMETERS", b"\x06\x05\x2b\x81\x04\x00\x23");
                let key = format!("{parameters}{}", pem_of(label, der));
                let access = access(address, &authority.pem(), Some([&client.pem, &key]));
                let result = handshake(&access).await;
                assert_eq!(result, Ok(()), "{algorithm:?} under {label}");
            }
        }
    }
}

/// The first message of a server: its version of TLS and what it chose.
fn server_hello(version: u8, cipher_suite: [u8; 2]) -> Vec<u8> {
    let mut hello = vec![2, 0, 0, 38, 3, version];
    hello.extend([7; 32]);
    hello.extend([0, cipher_suite[0], cipher_suite[1], 0]);
    let mut record = vec![22, 3, version, 0, 42];
    record.extend(hello);
    record
}

#[tokio::test]
async fn a_server_of_old_tls_is_refused_in_words() {
    const AES_128_CBC: [u8; 2] = [0xc0, 0x13];
    let alert = |description| vec![21, 3, 3, 0, 2, 2, description];
    let authorities = authority(&PKCS_ED25519).pem();
    for (name, answer) in [
        (
            "a cipher suite with CBC only, or key exchange by RSA",
            alert(40),
        ),
        ("TLS 1.0 and 1.1 only", alert(70)),
        ("weaker than we allow", alert(71)),
        ("TLS 1.0", server_hello(1, AES_128_CBC)),
        ("TLS 1.1", server_hello(2, AES_128_CBC)),
        (
            "a cipher suite that was not offered",
            server_hello(3, AES_128_CBC),
        ),
    ] {
        let address = answering(answer).await;
        let error = handshake(&access(address, &authorities, None))
            .await
            .unwrap_err();
        let needed = "must speak TLS 1.3, or 1.2 with ECDHE and AES-GCM or ChaCha20, \
                      on X25519, P-256 or P-384";
        assert!(error.contains(needed), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_failed_handshake_names_what_is_wrong_in_one_line() {
    let good = authority(&PKCS_ECDSA_P256_SHA256);
    let server = signed(named("a server"), &PKCS_ECDSA_P256_SHA256, &good);
    let mut for_clients = named("a client");
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let for_clients = signed(for_clients, &PKCS_ECDSA_P256_SHA256, &good);
    let names = (0..8).map(|number| format!("name{number}.example"));
    let many = CertificateParams::new(names.collect::<Vec<_>>()).unwrap();
    let many = signed(many, &PKCS_ECDSA_P256_SHA256, &good);
    let same_name = authority(&PKCS_ECDSA_P256_SHA256).pem();
    let mut other_name = named("another authority");
    other_name.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let other_name = by_itself(&other_name).pem;
    for (server, authorities, expected) in [
        (
            &server,
            &other_name,
            "the server's certificate is of an authority that is not among those of the CA data",
        ),
        (
            &server,
            &same_name,
            "the server's certificate is signed with another key than that of the authority of \
             this name in the CA data",
        ),
        (
            &for_clients,
            &good.pem(),
            "the server's certificate is for another purpose than a server's (extended key usage)",
        ),
        (
            &many,
            &good.pem(),
            "the server's certificate is for name0.example, name1.example, name2.example, \
             name3.example, name4.example and 3 more, not for 127.0.0.1",
        ),
    ] {
        let address = serve(server, None).await;
        let result = handshake(&access(address, authorities, None)).await;
        assert_eq!(result.unwrap_err(), expected);
    }
    let http = answering(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    assert_eq!(
        handshake(&access(http, &good.pem(), None))
            .await
            .unwrap_err(),
        "the server does not speak TLS, or what is between alters it"
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_client_is_told_in_one_line() {
    let good = authority(&PKCS_ECDSA_P256_SHA256);
    let server = signed(named("a server"), &PKCS_ECDSA_P256_SHA256, &good);
    let address = serve(&server, Some(&good)).await;
    let mut expired = named("a client");
    expired.not_after = date_time_ymd(2001, 1, 1);
    let expired = signed(expired, &PKCS_ECDSA_P256_SHA256, &good);
    let mut unknown = named("unknown");
    unknown.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let unknown = CertifiedIssuer::self_signed(unknown, key(&PKCS_ED25519)).unwrap();
    let unknown = signed(named("a client"), &PKCS_ECDSA_P256_SHA256, &unknown);
    for (client, why) in [
        (None, "it demands one"),
        (Some(expired), "it has expired"),
        (Some(unknown), "it is of an authority that is unknown there"),
    ] {
        let pem = client.map(|client| [client.pem, client.key.serialize_pem()]);
        let pem = pem
            .as_ref()
            .map(|[certificate, key]| [&**certificate, &**key]);
        let error = handshake(&access(address, &good.pem(), pem)).await;
        let expected = format!("the server refuses the client certificate: {why}");
        assert_eq!(error.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn a_field_without_a_usable_certificate_or_key_is_named() {
    let authority = authority(&PKCS_ECDSA_P256_SHA256);
    let client = signed(named("a client"), &PKCS_ECDSA_P256_SHA256, &authority);
    let (ca, certificate, key) = (authority.pem(), &*client.pem, client.key.serialize_pem());
    let other = self::key(&PKCS_ECDSA_P256_SHA256).serialize_pem();
    let broken = pem_of("CERTIFICATE", b"\0\0\0");
    let (garbage, encrypted) = (
        pem_of("PRIVATE KEY", b"s3cr3t"),
        pem_of("ENCRYPTED PRIVATE KEY", b"s3cr3t"),
    );
    let short = pem_of("PRIVATE KEY", &client.key.serialize_der()[..40]);
    let certificate_field = "user.client-certificate-data (line 4)";
    let key_field = "user.client-key-data (line 4)";
    let ca_field = "cluster.certificate-authority-data (line 3)";
    for (authorities, certificate, key, field, expected) in [
        (
            "no PEM",
            certificate,
            &*key,
            ca_field,
            "holds no certificate in PEM",
        ),
        (
            &*key,
            certificate,
            &key,
            ca_field,
            "holds no certificate in PEM",
        ),
        (
            &broken,
            certificate,
            &key,
            ca_field,
            "holds no certificate that can be read",
        ),
        (
            &ca,
            "no PEM",
            &key,
            certificate_field,
            "holds no certificate in PEM",
        ),
        (
            &ca,
            &key,
            &key,
            certificate_field,
            "holds no certificate in PEM",
        ),
        (
            &ca,
            certificate,
            certificate,
            key_field,
            "holds no private key in PEM",
        ),
        (
            &ca,
            certificate,
            &encrypted,
            key_field,
            "holds a key that is encrypted; it must be without a passphrase",
        ),
        (
            &ca,
            certificate,
            &garbage,
            key_field,
            "holds a private key that is broken",
        ),
        (
            &ca,
            certificate,
            &short,
            key_field,
            "holds a private key that is broken or none of RSA from 2,048 bits on, ECDSA on \
             P-256, P-384 and P-521, Ed25519",
        ),
        (
            &ca,
            certificate,
            &other,
            key_field,
            "is not the key of user.client-certificate-data",
        ),
    ] {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let error = handshake(&access(nowhere, authorities, Some([certificate, key]))).await;
        assert_eq!(error.unwrap_err(), format!("{field} {expected}"));
    }
}

#[tokio::test]
async fn only_the_server_judges_a_client_certificate() {
    let authority = authority(&PKCS_ECDSA_P256_SHA256);
    let server = signed(named("a server"), &PKCS_ECDSA_P256_SHA256, &authority);
    let address = serve(&server, None).await;
    let mut expired = named("a client");
    expired.not_after = date_time_ymd(2001, 1, 1);
    let of_an_authority = by_itself(&own_authority());
    let nobodys = Certified {
        pem: pem_of("CERTIFICATE", b"\x30\x03\x02\x01\x07"),
        ..by_itself(&named("x"))
    };
    for client in [by_itself(&expired), of_an_authority, nobodys] {
        let key = client.key.serialize_pem();
        let access = access(address, &authority.pem(), Some([&client.pem, &key]));
        assert_eq!(handshake(&access).await, Ok(()));
    }
}
