package svc.visitor

import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.Test
import svc.visitor.core.Engine
import svc.visitor.core.Texts
import java.io.File
import java.io.IOException
import java.net.InetAddress
import java.net.Socket
import java.nio.file.Files
import java.security.KeyStore
import java.security.Principal
import java.security.PrivateKey
import java.security.cert.X509Certificate
import java.util.concurrent.CopyOnWriteArrayList
import javax.net.ssl.SSLContext
import javax.net.ssl.X509ExtendedKeyManager

/** Pins against servers that are trusted: an authority of a company's proxy is, too. */
class PinningTest {
    private fun pin(name: String) = Texts.base64(Texts.sha256(certificate(name).publicKey.encoded))

    /** What a server with this chain comes to, and whether it got a request. */
    private fun reported(chain: List<X509Certificate>, vararg pins: String): Pair<Any, Boolean> {
        val manager = object : X509ExtendedKeyManager() {
            override fun getClientAliases(type: String?, issuers: Array<Principal>?) = null

            override fun chooseClientAlias(types: Array<String>?, issuers: Array<Principal>?, socket: Socket?) = null

            override fun getServerAliases(type: String?, issuers: Array<Principal>?) = arrayOf("x")

            override fun chooseServerAlias(type: String?, issuers: Array<Principal>?, socket: Socket?) = "x"

            override fun getCertificateChain(alias: String?) = chain.toTypedArray()

            override fun getPrivateKey(alias: String?) = KEYS.getKey("leaf", PASSWORD) as PrivateKey
        }
        val context = SSLContext.getInstance("TLS").apply { init(arrayOf(manager), null, null) }
        val server = context.serverSocketFactory.createServerSocket(0, 20, InetAddress.getLoopbackAddress())
        val received = CopyOnWriteArrayList<String>()
        Thread {
            try {
                while (true) server.accept().use { socket ->
                    try {
                        val line = socket.getInputStream().bufferedReader().readLine()
                        if (line != null) received.add(line)
                        socket.getOutputStream().write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${DONE.length}\r\n\r\n$DONE".toByteArray())
                        socket.getOutputStream().flush()
                        socket.shutdownInput()
                        Thread.sleep(50)
                    } catch (_: IOException) {
                    }
                }
            } catch (_: IOException) {
            }
        }.apply { isDaemon = true }.start()
        val options = SvcOptions.Builder(KEY, "https://localhost:${server.localPort}").pins(*pins, OTHER_PIN).deferred(false).build()
        val reported = Reported()
        Engine(options, Phone()).identify(SvcRequest("t"), reported)
        return Pair(reported.next(), received.isNotEmpty()).also { server.close() }
    }

    @Test fun `a pinned leaf, authority or root is right`() {
        val chain = listOf(certificate("leaf"), certificate("ca"))
        for (name in listOf("leaf", "ca")) assertTrue(reported(chain, pin(name)).first is SvcIdentification, name)
    }

    @Test fun `a chain without a pin is refused before anything is sent, and a pinned certificate at its end changes nothing`() {
        val chain = listOf(certificate("leaf"), certificate("ca"))
        for (sent in listOf(chain, chain + certificate("pinned"), chain.take(1) + certificate("pinned") + chain.drop(1))) {
            val (error, isSent) = reported(sent, pin("pinned"))
            assertEquals(listOf("pin_mismatch", false, false), listOf((error as? SvcException)?.code, error.let { it as SvcException }.retryable, isSent))
        }
    }

    @Test fun `a chain that is not trusted is no matter of pins`() {
        distrust()
        try {
            val (error, isSent) = reported(listOf(certificate("leaf"), certificate("ca")), pin("leaf"))
            assertEquals(listOf("network", false), listOf((error as SvcException).code, isSent))
        } finally {
            trust()
        }
    }

    companion object {
        private val PASSWORD = "secret".toCharArray()
        private const val OTHER_PIN = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        private val FOLDER = Files.createTempDirectory("pins").toFile()
        private val KEYS by lazy { KeyStore.getInstance(File(FOLDER, "keys.p12"), PASSWORD) }

        private fun certificate(name: String) = KEYS.getCertificate(name) as X509Certificate

        private fun keytool(vararg arguments: String) {
            val program = File(System.getProperty("java.home"), "bin/keytool").path
            val store = listOf("-keystore", "keys.p12", "-storepass", "secret", "-storetype", "PKCS12")
            val done = ProcessBuilder(listOf(program) + arguments + store).directory(FOLDER).redirectErrorStream(true).start()
            val said = done.inputStream.bufferedReader().readText()
            assertEquals(0, done.waitFor(), said)
        }

        private fun trust() {
            System.setProperty("javax.net.ssl.trustStore", File(FOLDER, "trust.p12").path)
            System.setProperty("javax.net.ssl.trustStorePassword", "secret")
        }

        private fun distrust() = listOf("", "Password").forEach { System.clearProperty("javax.net.ssl.trustStore$it") }

        @JvmStatic @BeforeAll fun make() {
            fun pair(name: String, vararg more: String) = keytool("-genkeypair", "-alias", name, "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=$name", "-validity", "30", *more)
            pair("ca", "-ext", "bc:c")
            pair("pinned", "-ext", "bc:c")
            pair("leaf", "-signer", "ca", "-ext", "san=dns:localhost")
            KeyStore.getInstance("PKCS12").run {
                load(null, null)
                setCertificateEntry("ca", certificate("ca"))
                File(FOLDER, "trust.p12").outputStream().use { store(it, PASSWORD) }
            }
            trust()
        }

        @JvmStatic @AfterAll fun clear() {
            distrust()
            FOLDER.deleteRecursively()
        }
    }
}
