package svc.visitor.android

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.spec.ECGenParameterSpec

/** A key of the hardware for one challenge; its chain says what app and device made it. The key is deleted at once. */
internal object KeyAttestation {
    private const val ALIAS = "svc_visitor_attestation"
    private const val PROVIDER = "AndroidKeyStore"

    fun chain(challenge: ByteArray): List<ByteArray> {
        val wanted = KeyGenParameterSpec.Builder(ALIAS, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(challenge)
            .build()
        try {
            KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, PROVIDER).run {
                initialize(wanted)
                generateKeyPair()
            }
            return store().getCertificateChain(ALIAS).map { it.encoded }
        } finally {
            forget()
        }
    }

    fun forget() {
        val store = store()
        if (store.containsAlias(ALIAS)) store.deleteEntry(ALIAS)
    }

    private fun store(): KeyStore = KeyStore.getInstance(PROVIDER).apply { load(null) }
}
