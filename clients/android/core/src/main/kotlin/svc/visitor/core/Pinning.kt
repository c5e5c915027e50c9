package svc.visitor.core

import java.net.Socket
import java.security.KeyStore
import java.security.cert.CertPathBuilder
import java.security.cert.CertStore
import java.security.cert.CertificateException
import java.security.cert.CollectionCertStoreParameters
import java.security.cert.PKIXBuilderParameters
import java.security.cert.PKIXCertPathBuilderResult
import java.security.cert.TrustAnchor
import java.security.cert.X509CertSelector
import java.security.cert.X509Certificate
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLEngine
import javax.net.ssl.SSLSocket
import javax.net.ssl.SSLSocketFactory
import javax.net.ssl.TrustManagerFactory
import javax.net.ssl.X509ExtendedTrustManager
import javax.net.ssl.X509TrustManager

/** The chain of the service has none of the pinned keys. */
class PinException : CertificateException("the chain has none of the pinned keys")

/**
 * Looks for pinned keys in the chain that was validated, never in what the peer sent: anybody can append a certificate that is
 * public. It does so within the handshake, so that no connection that the system makes by itself gets around it.
 */
internal class Pinning(private val pins: Set<String>, private val host: Host) {
    val sockets: SSLSocketFactory by lazy {
        SSLContext.getInstance("TLS").apply { init(null, arrayOf(Manager()), null) }.socketFactory
    }

    private fun check(chain: List<X509Certificate>) {
        if (chain.none { Texts.base64(Texts.sha256(it.publicKey.encoded)) in pins }) throw PinException()
    }

    private inner class Manager : X509ExtendedTrustManager() {
        private val system = Chains.system()

        override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String, socket: Socket?) {
            if (system is X509ExtendedTrustManager) system.checkServerTrusted(chain, authType, socket)
            check(host.validated(chain, authType, (socket as? SSLSocket)?.handshakeSession?.peerHost ?: ""))
        }

        override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String, engine: SSLEngine?) =
            check(host.validated(chain, authType, engine?.peerHost ?: ""))

        override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String) = check(host.validated(chain, authType, ""))

        override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String, socket: Socket?) = throw CertificateException()

        override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String, engine: SSLEngine?) = throw CertificateException()

        override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String) = throw CertificateException()

        override fun getAcceptedIssuers(): Array<X509Certificate> = system.acceptedIssuers
    }
}

/** Chains of certificates where the system does not say which one it validated. */
object Chains {
    fun system(): X509TrustManager = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm())
        .apply { init(null as KeyStore?) }.trustManagers.filterIsInstance<X509TrustManager>().first()

    /** From the leaf to an anchor that the system trusts (RFC 5280), of what was sent. Throws where there is none. */
    fun validated(sent: Array<X509Certificate>, authType: String): List<X509Certificate> {
        val system = system()
        system.checkServerTrusted(sent, authType)
        try {
            val anchors = system.acceptedIssuers.map { TrustAnchor(it, null) }.toSet()
            val wanted = PKIXBuilderParameters(anchors, X509CertSelector().apply { certificate = sent[0] })
            wanted.isRevocationEnabled = false // as in the check above
            wanted.addCertStore(CertStore.getInstance("Collection", CollectionCertStoreParameters(sent.toList())))
            val built = CertPathBuilder.getInstance("PKIX").build(wanted) as PKIXCertPathBuilderResult
            return built.certPath.certificates.map { it as X509Certificate } + listOfNotNull(built.trustAnchor.trustedCert)
        } catch (error: java.security.GeneralSecurityException) {
            throw CertificateException(error)
        }
    }
}
