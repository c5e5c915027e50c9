package svc.visitor.android

import android.content.Context
import android.content.pm.PackageInfo
import android.content.pm.PackageManager
import android.location.Location
import android.os.Build

/** Calls that the least version does not have, each behind a look at the version: exempt from the check of signatures. */
@Retention(AnnotationRetention.BINARY)
annotation class Guarded

/** What changed its name in newer versions. */
@Guarded
internal object NewerApi {
    @Suppress("DEPRECATION")
    fun versionCode(info: PackageInfo): Long =
        if (Build.VERSION.SDK_INT >= 28) info.longVersionCode else info.versionCode.toLong()

    @Suppress("DEPRECATION")
    fun installer(context: Context): String? {
        val manager = context.packageManager
        return if (Build.VERSION.SDK_INT >= 30) manager.getInstallSourceInfo(context.packageName).installingPackageName
        else manager.getInstallerPackageName(context.packageName)
    }

    /** The certificate that the app is signed with now. */
    @Suppress("DEPRECATION")
    fun signer(context: Context): ByteArray? {
        val manager = context.packageManager
        if (Build.VERSION.SDK_INT >= 28) {
            val signing = manager.getPackageInfo(context.packageName, PackageManager.GET_SIGNING_CERTIFICATES).signingInfo ?: return null
            return signing.apkContentsSigners?.firstOrNull()?.toByteArray()
        }
        return manager.getPackageInfo(context.packageName, PackageManager.GET_SIGNATURES).signatures?.firstOrNull()?.toByteArray()
    }

    @Suppress("DEPRECATION")
    fun isMock(location: Location): Boolean =
        if (Build.VERSION.SDK_INT >= 31) location.isMock else location.isFromMockProvider
}
