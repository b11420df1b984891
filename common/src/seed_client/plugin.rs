//! What is said of a kubeconfig's exec plugin that fails. The errors themselves have its arguments,
//! its environment and its output, and so credentials.

use kube::client::AuthError;

/// The error, without what could be a secret of the plugin: of its words only those for people
/// remain.
pub(super) fn redact_exec_error(error: kube::Error) -> kube::Error {
    let error = match error {
        kube::Error::Auth(error) => error,
        kube::Error::Service(error) => match error.downcast() {
            Ok(error) => *error,
            Err(error) => return kube::Error::Service(error),
        },
        error => return error,
    };
    kube::Error::Auth(match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            AuthError::AuthExec(format!(
                "the kubeconfig's exec plugin failed ({}): {}",
                out.status,
                said.trim()
            ))
        }
        AuthError::AuthExecParse(_) => {
            AuthError::AuthExec("the kubeconfig's exec plugin printed no ExecCredential".to_owned())
        }
        error => error,
    })
}
