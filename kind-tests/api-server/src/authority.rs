//! A certificate authority that lives as long as the test.

use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Issues serving certificates; cheap to clone.
#[derive(Clone)]
pub struct Authority {
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
}

/// What a serving certificate says.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Names and addresses it is good for.
    pub names: Vec<String>,
    /// Whether its time is over.
    pub expired: bool,
}

impl Default for Serving {
    /// Good for loopback by address and by name.
    fn default() -> Self {
        Self {
            names: ["127.0.0.1", "localhost", "kubernetes.default.svc"]
                .map(str::to_owned)
                .to_vec(),
            expired: false,
        }
    }
}

impl Authority {
    /// A new authority with a key of its own.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        // The certificates that it signs have another one, rcgen's default.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "memory-api authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self {
            issuer: Arc::new(issuer),
        })
    }

    /// The authority's certificate, as PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A TLS set-up, HTTP/1.1 only.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn serve(&self, serving: &Serving) -> Result<Arc<ServerConfig>> {
        let (certificate, key) = self.sign(serving)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// A fresh certificate and its key.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn sign(&self, serving: &Serving) -> Result<(Certificate, KeyPair)> {
        let mut params = CertificateParams::new(serving.names.clone())?;
        if serving.expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }
}
