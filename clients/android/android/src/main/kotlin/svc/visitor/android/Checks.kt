package svc.visitor.android

import android.content.Context
import android.content.pm.ApplicationInfo
import android.content.pm.PackageManager
import android.hardware.Sensor
import android.hardware.SensorManager
import android.net.ConnectivityManager
import android.net.NetworkCapabilities
import android.os.Build
import android.os.Debug
import android.os.Process
import android.provider.Settings
import svc.visitor.SvcOptions
import svc.visitor.core.Source
import java.io.File
import java.io.IOException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.Socket

/** The files that the checks look at; in tests a folder. */
internal class Files(private val root: String = "") {
    fun exists(path: String): Boolean = File(root + path).exists()

    fun text(path: String): String = try {
        File(root + path).readText()
    } catch (_: IOException) {
        ""
    }

    fun below(path: String): List<String> = File(root + path).list()?.map { "$path/$it" } ?: emptyList()
}

/**
 * Integrity checks, by the names of their flags. Where one trait alone may be an accident, two must agree. All are hints:
 * a person who controls the device can hide from code in the app.
 */
internal class Checks(
    private val context: Context,
    private val app: AppFacts,
    private val options: SvcOptions,
    private val files: Files = Files(),
    private val isMocked: () -> Boolean?,
) {
    fun all(): List<Source> = listOf(
        Source("rooted") { two(hasRootFiles(), "test-keys" in (Build.TAGS ?: ""), isSystemWritable(), hasRootManager()) },
        Source("emulator") { two(isNamedEmulator(), hasEmulatorDevices(), hasNoAccelerometer()) },
        Source("frida") { isFridaMapped() || two(hasFridaThread(), isFridaListening()) },
        Source("hooked") { two(hasHookClasses(), hasHookMaps(), isHookOnStack()) },
        Source("debugger") { Debug.isDebuggerConnected() || isTraced() },
        Source("app_tampering") { isResigned() || two(isDebuggable(), app.installer in STORES) },
        Source("cloned_app") { isElsewhere() || two(isCloneUser(), app.installer == null) },
        Source("vpn_active") { isVpn() },
        Source("location_spoofing") { isMocked() ?: false },
        Source("developer_options") { isOn(Settings.Global.ADB_ENABLED) || isOn(Settings.Global.DEVELOPMENT_SETTINGS_ENABLED) },
        Source("unofficial_store") { options.expectedInstallers.isNotEmpty() && app.installer !in options.expectedInstallers },
    )

    private fun two(vararg traits: Boolean): Boolean = traits.count { it } >= 2

    // Rooted

    private fun hasRootFiles(): Boolean =
        SU_FOLDERS.any { files.exists("${it}su") } || MAGISK.any { files.exists(it) }

    private fun isSystemWritable(): Boolean = files.text("/proc/mounts").lineSequence().any {
        val part = it.split(' ')
        part.size > 3 && (part[1] == "/system" || part[1] == "/vendor") && "rw" in part[3].split(',')
    }

    private fun hasRootManager(): Boolean = ROOT_MANAGERS.any {
        try {
            context.packageManager.getPackageInfo(it, 0)
            true
        } catch (_: PackageManager.NameNotFoundException) {
            false
        }
    }

    // Emulator

    private fun isNamedEmulator(): Boolean {
        val names = listOf(Build.FINGERPRINT, Build.MODEL, Build.HARDWARE, Build.PRODUCT, Build.MANUFACTURER).map { (it ?: "").lowercase() }
        return names.any { name -> EMULATORS.any { it in name } } || names[0].startsWith("generic/")
    }

    private fun hasEmulatorDevices(): Boolean = EMULATOR_DEVICES.any { files.exists(it) }

    private fun hasNoAccelerometer(): Boolean =
        (context.getSystemService(Context.SENSOR_SERVICE) as SensorManager).getDefaultSensor(Sensor.TYPE_ACCELEROMETER) == null

    // Frida and hooks

    private fun maps(): String = files.text("/proc/self/maps")

    private fun isFridaMapped(): Boolean = maps().lineSequence().any { "frida-agent" in it || "frida-gadget" in it }

    private fun hasFridaThread(): Boolean = files.below("/proc/self/task").any { "gum-js-loop" in files.text("$it/comm") }

    private fun isFridaListening(): Boolean = try {
        Socket().use { it.connect(InetSocketAddress(InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1)), FRIDA_PORT), 50) }
        true
    } catch (_: IOException) {
        false
    }

    private fun hasHookClasses(): Boolean = HOOK_CLASSES.any {
        try {
            Class.forName(it, false, ClassLoader.getSystemClassLoader())
            true
        } catch (_: ClassNotFoundException) {
            false
        }
    }

    private fun hasHookMaps(): Boolean = maps().lineSequence().any { line -> HOOK_MAPS.any { it in line } }

    private fun isHookOnStack(): Boolean = Throwable().stackTrace.any { frame -> HOOK_CLASSES.any { frame.className.startsWith(it) } }

    private fun isTraced(): Boolean = files.text("/proc/self/status").lineSequence()
        .firstOrNull { it.startsWith("TracerPid:") }?.substringAfter(':')?.trim()?.let { it != "0" } ?: false

    // The app

    private fun isResigned(): Boolean = options.expectedSigners.isNotEmpty() && app.signer !in options.expectedSigners

    private fun isDebuggable(): Boolean = context.applicationInfo.flags and ApplicationInfo.FLAG_DEBUGGABLE != 0

    private fun isElsewhere(): Boolean = context.packageName !in context.filesDir.path.split('/')

    /** Users that makers' cloning functions use; work profiles have others. */
    private fun isCloneUser(): Boolean = Process.myUid() / UIDS_OF_A_USER in CLONE_USERS

    // The network and the system

    private fun isVpn(): Boolean {
        val manager = context.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager
        return manager.getNetworkCapabilities(manager.activeNetwork)?.hasTransport(NetworkCapabilities.TRANSPORT_VPN) ?: false
    }

    private fun isOn(setting: String): Boolean = Settings.Global.getInt(context.contentResolver, setting, 0) == 1

    companion object {
        const val FRIDA_PORT = 27_042
        const val UIDS_OF_A_USER = 100_000
        val CLONE_USERS = setOf(95, 999)
        val STORES = setOf("com.android.vending", "com.amazon.venezia", "com.huawei.appmarket", "com.sec.android.app.samsungapps")
        val SU_FOLDERS = listOf("/system/bin/", "/system/xbin/", "/sbin/", "/su/bin/", "/vendor/bin/", "/data/local/", "/data/local/bin/", "/data/local/xbin/")
        val MAGISK = listOf("/data/adb/magisk", "/sbin/.magisk", "/cache/.disable_magisk", "/data/adb/ksu", "/data/adb/ap")
        val ROOT_MANAGERS = listOf(
            "com.topjohnwu.magisk", "io.github.huskydg.magisk", "me.weishu.kernelsu", "me.bmax.apatch",
            "eu.chainfire.supersu", "com.koushikdutta.superuser",
        )
        val EMULATORS = listOf("goldfish", "ranchu", "sdk_gphone", "google_sdk", "android sdk built for", "emulator", "genymotion", "vbox86", "bluestacks", "nox")
        val EMULATOR_DEVICES = listOf("/dev/socket/qemud", "/dev/qemu_pipe", "/dev/goldfish_pipe", "/dev/vboxguest", "/system/lib/libc_malloc_debug_qemu.so")
        val HOOK_CLASSES = listOf("de.robv.android.xposed.XposedBridge", "org.lsposed.lspd", "com.saurik.substrate.MS\$2", "com.saurik.substrate")
        val HOOK_MAPS = listOf("XposedBridge", "libxposed", "lspd", "liblspd", "libsubstrate", "libriru", "edxp")
    }
}
