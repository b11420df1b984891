//! Keys and trust: what TLS is made of.

use std::sync::Arc;

use kube::Config;
use kube::client::ConfigExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    Resumption, WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, InconsistentKeys, RootCertStore,
    SignatureScheme,
};

use super::access::Identity;
use super::kubeconfig::{Field, KubeconfigError, Pem};

/// Accepted certificates of a server.
pub enum Trust {
    Authorities(Pem),
    /// Those that kube trusts: in a pod what the file with the authorities says, which it reads
    /// again each minute, all with `insecure-skip-tls-verify`, else what the system does.
    Kube(Box<Config>),
}

/// A certificate that cannot be read is passed over, as by Go, if another one can.
///
/// # Errors
/// If nothing can be read of a field, or a key does not fit.
pub(super) fn client_config(
    trust: &Trust,
    identity: Option<&Identity>,
) -> Result<ClientConfig, KubeconfigError> {
    let mut config = match trust {
        Trust::Authorities(pem) => {
            let builder = ClientConfig::builder();
            let trusted = TrustedCertificates::read(pem, builder.crypto_provider())?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(trusted))
                .with_no_client_auth()
        }
        Trust::Kube(config) => config.rustls_client_config().map_err(|error| {
            let field = Field::named("cluster.certificate-authority-data");
            field.error(format!("is missing, and others cannot be read: {error}"))
        })?,
    };
    if let Some(identity) = identity {
        let key = certified(identity, config.crypto_provider())?;
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
    }
    // Connections are kept; what could be resumed would only be kept in memory.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// For connections without TLS: what the system trusts is not read, since a system may have nothing.
pub(super) fn unused_config() -> ClientConfig {
    ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    let sections = CertificateDer::pem_slice_iter(&pem.text).filter_map(Result::ok);
    let certificates: Vec<_> = sections.collect();
    if certificates.is_empty() {
        return Err(pem.field.error("holds no certificate in PEM"));
    }
    Ok(certificates)
}

/// Reads a key by what it is: labels are often wrong.
fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, KubeconfigError> {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(&pem.text).filter_map(Result::ok);
    let mut keys = sections.filter(|(kind, _)| {
        matches!(
            kind,
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
        )
    });
    let Some((_, der)) = keys.next() else {
        let is_encrypted = pem.text.windows(9).any(|word| word == b"ENCRYPTED");
        return Err(pem.field.error(if is_encrypted {
            "holds a key that is encrypted; it must be without a passphrase"
        } else {
            "holds no private key in PEM"
        }));
    };
    PrivateKeyDer::try_from(der).map_err(|_| pem.field.error("holds a private key that is broken"))
}

/// Leaves it to the server to judge the certificate, so it may be one that is not read here.
fn certified(
    identity: &Identity,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, KubeconfigError> {
    let Identity { certificate, key } = identity;
    let chain = certificates(certificate)?;
    let unusable = |_| {
        let supported = "RSA from 2,048 bits on, ECDSA on P-256, P-384 and P-521, Ed25519";
        let problem = format!("holds a private key that is broken or none of {supported}");
        key.field.error(problem)
    };
    let loaded = provider.key_provider.load_private_key(private_key(key)?);
    let certified = CertifiedKey::new(chain, loaded.map_err(unusable)?);
    match certified.keys_match() {
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            let problem = format!("is not the key of {}", certificate.field.name);
            Err(key.field.error(problem))
        }
        _ => Ok(certified),
    }
}

/// Trusts what authorities have signed and, as Go does, each of these very certificates: one that a
/// server has made for itself is often an authority's, which webpki refuses for a server.
#[derive(Debug)]
struct TrustedCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    all: Vec<CertificateDer<'static>>,
}

impl TrustedCertificates {
    fn read(pem: &Pem, provider: &Arc<CryptoProvider>) -> Result<Self, KubeconfigError> {
        let mut roots = RootCertStore::empty();
        let all = certificates(pem)?;
        roots.add_parsable_certificates(all.iter().cloned());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let authorities = authorities.build().map_err(|_| {
            let problem = "holds no certificate that can be read";
            pem.field.error(problem)
        })?;
        Ok(Self { authorities, all })
    }
}

/// True if nothing but an authority is missing. It is missed only where the dates are good, and so
/// is a server's part.
fn lacks_only_an_authority(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            matches!(
                other.0.downcast_ref(),
                Some(webpki::Error::CaUsedAsEndEntity)
            )
        }
        _ => false,
    }
}

impl ServerCertVerifier for TrustedCertificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.all.contains(certificate) {
            return self.authorities.verify_server_cert(
                certificate,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        let certificate = ParsedCertificate::try_from(certificate)?;
        let nobody = RootCertStore::empty();
        let verified =
            verify_server_cert_signed_by_trust_anchor(&certificate, &nobody, &[], now, &[]);
        match verified {
            Err(error) if !lacks_only_an_authority(&error) => Err(error),
            _ => {
                verify_server_name(&certificate, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let authorities = &self.authorities;
        authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let authorities = &self.authorities;
        authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
