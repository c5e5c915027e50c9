package svc.visitor

import org.junit.Assert.assertEquals
import org.junit.Test
import svc.visitor.android.Checks
import java.io.File

/** What an app takes over with the SDK. */
class ManifestTest {
    private val manifest = File("AndroidManifest.xml").readText()

    private fun named(element: String) = Regex("<$element android:name=\"([^\"]+)\"").findAll(manifest).map { it.groupValues[1] }.toList()

    @Test fun `two permissions and six packages, and nothing that runs by itself`() {
        assertEquals(listOf("android.permission.INTERNET", "android.permission.ACCESS_NETWORK_STATE"), named("uses-permission"))
        assertEquals(Checks.ROOT_MANAGERS, named("package"))
        val elements = Regex("<([a-z][a-z-]*)").findAll(manifest).map { it.groupValues[1] }.toSet()
        assertEquals(setOf("manifest", "uses-sdk", "uses-permission", "queries", "package"), elements)
    }

    @Test fun `consumer rules keep public names only`() {
        val rules = File("proguard.txt").readLines().filter { it.isNotBlank() }
        assertEquals(listOf("-keep public class svc.visitor.Svc* { public *; }", "-dontwarn svc.visitor.**"), rules)
    }
}
