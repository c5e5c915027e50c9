package svc.visitor

import com.android.tools.r8.D8
import com.android.tools.r8.D8Command
import com.android.tools.r8.OutputMode
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** What Android would load: how many methods, and what they refer to. */
class DexTest {
    private val classes = listOf(Packing.PACKED)

    @Before fun pack() = Packing.pack()

    @Test fun `the classes become dex of at most 1,700 methods`() {
        val made = File("target/dex").apply { mkdirs() }
        val path = File("target/classpath.txt").readText().split(File.pathSeparator)
        fun jar(name: String) = path.single { File(it).name.startsWith(name) }.let { File(it).toPath() }
        val files = classes.flatMap { all(it) }.map { it.toPath() }
        D8.run(
            D8Command.builder().addProgramFiles(files).addLibraryFiles(jar("android-all-")).addClasspathFiles(jar("kotlin-stdlib-2"))
                .setMinApiLevel(24).setOutput(made.toPath(), OutputMode.DexIndexed).build(),
        )
        val dex = File(made, "classes.dex")
        val header = ByteBuffer.wrap(dex.readBytes()).order(ByteOrder.LITTLE_ENDIAN)
        val references = header.getInt(88)
        val own = classes.flatMap { all(it) }.sumOf { methods(it) }
        File("target/dex.txt").writeText("methods of its own: $own, methods of dex with those of the system: $references, bytes of dex: ${dex.length()}\n")
        assertTrue("$references", references in 100..1_700)
    }

    private fun all(folder: File) = folder.walk().filter { it.extension == "class" }.toList()

    private fun methods(file: File) = org.objectweb.asm.tree.ClassNode()
        .also { org.objectweb.asm.ClassReader(file.readBytes()).accept(it, 0) }.methods.size

    @Test fun `nothing refers to what is never read`() {
        val texts = classes.flatMap { all(it) }.map { it.name to String(it.readBytes(), Charsets.ISO_8859_1) }
        val found = FORBIDDEN.filter { name -> texts.any { name in it.second } }
        assertEquals(emptyList<String>(), found)
        assertTrue(FORBIDDEN.size >= 30)
    }

    @Test fun `the part without Android refers to none of it`() {
        for (file in all(Packing.CLASSES[0])) {
            val text = String(file.readBytes(), Charsets.ISO_8859_1)
            assertTrue(file.name, "android/os" !in text && "android/content" !in text && "Landroid/" !in text)
        }
    }

    private companion object {
        val FORBIDDEN = listOf(
            "MediaDrm", "AdvertisingIdClient", "getInstalledPackages", "getInstalledApplications", "queryIntentActivities",
            "com.google.android.gsf", "getSerial", "getImei", "getMeid", "getDeviceSoftwareVersion", "getSubscriberId", "getSimSerialNumber",
            "getLine1Number", "getMacAddress", "getHardwareAddress", "getSSID", "getBSSID", "WifiManager", "WifiInfo",
            "BluetoothAdapter", "AccountManager", "ClipboardManager", "AccessibilityManager", "BatteryManager", "TelephonyManager",
            "getRunningAppProcesses", "getRunningTasks", "UsageStatsManager", "getLastKnownLocation", "requestLocationUpdates",
            "getLatitude", "ContactsContract", "getAppOpsManager", "BuildConfig", "HttpClient",
        )
    }
}
