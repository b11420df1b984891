//! A certificate authority for the servers of one test process.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

/// Signs the serving certificates of a test process.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, both as PEM text.
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new authority with a key of its own.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "dependency-watchdog test bed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// The authority's own certificate as PEM text.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server on loopback.
    pub fn issue(&self, name: &str) -> Result<Certificate> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".into(), "localhost".into()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Certificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
