package svc.visitor.android

import android.app.ActivityManager
import android.app.UiModeManager
import android.content.Context
import android.graphics.Point
import android.hardware.display.DisplayManager
import android.os.Build
import android.os.Environment
import android.os.LocaleList
import android.os.StatFs
import android.provider.Settings
import android.text.format.DateFormat
import android.util.DisplayMetrics
import android.view.Display
import svc.visitor.core.Source
import svc.visitor.core.Texts
import java.io.File
import java.io.IOException
import java.util.TimeZone

/** What is read of the app itself, once. */
internal class AppFacts(private val context: Context) {
    val signer: String? by lazy { NewerApi.signer(context)?.let { Texts.hex(Texts.sha256(it)) } }

    /** `null` also where the system does not know the app, as in some work profiles and tests. */
    val installer: String? by lazy {
        try {
            NewerApi.installer(context)
        } catch (_: Exception) {
            null
        }
    }

    fun versionCode(): String = try {
        NewerApi.versionCode(context.packageManager.getPackageInfo(context.packageName, 0)).toString()
    } catch (_: Exception) {
        "0"
    }

    fun all(): Map<String, Any?> = mapOf(
        "package" to context.packageName, "version" to versionCode(), "installer" to installer, "signer" to signer,
    )
}

/** Fields of the report, by the names of `report.json`. */
internal class Sources(private val context: Context, private val app: AppFacts) {
    private val resolver get() = context.contentResolver

    fun all(): List<Source> = listOf(
        Source("build", isConstant = true) { build() },
        Source("cores", isConstant = true) { cores() },
        Source("memory", isConstant = true) { memory() },
        Source("disk", isConstant = true) { StatFs(Environment.getDataDirectory().path).totalBytes },
        Source("screen", isConstant = true) { screen() },
        Source("languages") { LocaleList.getDefault().toLanguageTags().split(',') },
        Source("timezone") { TimeZone.getDefault().id },
        Source("font_scale") { context.resources.configuration.fontScale.toDouble() },
        Source("clock_24") { DateFormat.is24HourFormat(context) },
        Source("input_method") { Settings.Secure.getString(resolver, Settings.Secure.DEFAULT_INPUT_METHOD) },
        Source("night_mode") { nightMode() },
        Source("screen_off") { Settings.System.getString(resolver, Settings.System.SCREEN_OFF_TIMEOUT)?.toLong() },
        Source("android_id", isConstant = true) { Settings.Secure.getString(resolver, Settings.Secure.ANDROID_ID) },
        Source("app", isConstant = true) { app.all() },
    )

    private fun build(): Map<String, Any?> = mapOf(
        "manufacturer" to Build.MANUFACTURER, "model" to Build.MODEL, "os_version" to Build.VERSION.RELEASE,
        "os_build" to Build.DISPLAY, "abis" to Build.SUPPORTED_ABIS.toList(), "api_level" to Build.VERSION.SDK_INT,
    )

    private fun cores(): Any = try {
        File("/sys/devices/system/cpu/possible").readText()
    } catch (_: IOException) {
        Runtime.getRuntime().availableProcessors()
    }

    private fun memory(): Long {
        val info = ActivityManager.MemoryInfo()
        (context.getSystemService(Context.ACTIVITY_SERVICE) as ActivityManager).getMemoryInfo(info)
        return info.totalMem
    }

    private fun screen(): Map<String, Any?> {
        val manager = context.getSystemService(Context.DISPLAY_SERVICE) as DisplayManager
        val display = manager.getDisplay(Display.DEFAULT_DISPLAY)
        val modes = display.supportedModes.map { listOf(it.physicalWidth, it.physicalHeight) }
        return mapOf(
            "modes" to modes.ifEmpty { listOf(realSize(display)) },
            // Not what the user chose as the size of the display, which the second one follows.
            "density" to (DisplayMetrics.DENSITY_DEVICE_STABLE.takeIf { it > 0 } ?: context.resources.displayMetrics.densityDpi),
        )
    }

    @Suppress("DEPRECATION")
    private fun realSize(display: Display): List<Int> {
        val size = Point()
        display.getRealSize(size)
        return listOf(minOf(size.x, size.y), maxOf(size.x, size.y))
    }

    private fun nightMode(): Int? =
        (context.getSystemService(Context.UI_MODE_SERVICE) as UiModeManager).nightMode.takeIf { it >= 0 }
}
