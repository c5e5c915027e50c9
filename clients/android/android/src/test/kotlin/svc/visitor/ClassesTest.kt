package svc.visitor

import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import java.io.File

/** What the classes refer to, and never do. */
class ClassesTest {
    private val classes = listOf(Packing.PACKED)

    @Before fun pack() = Packing.pack()

    private fun all(folder: File) = folder.walk().filter { it.extension == "class" }.toList()

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
