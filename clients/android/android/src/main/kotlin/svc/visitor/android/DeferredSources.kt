package svc.visitor.android

import android.content.Context
import android.hardware.Sensor
import android.hardware.SensorManager
import android.hardware.camera2.CameraCharacteristics
import android.hardware.camera2.CameraManager
import android.media.MediaCodecList
import android.opengl.EGL14
import android.opengl.EGLConfig
import android.opengl.GLES20
import svc.visitor.core.Source
import svc.visitor.core.Texts

/** What is equal on all phones of a model and build: digests, for a person who wonders whether a report is consistent. */
internal class DeferredSources(private val context: Context) {
    fun all(): List<Source> = listOf(
        Source("sensors") { digest(sensors()) },
        Source("cameras") { digest(cameras()) },
        Source("codecs") { digest(MediaCodecList(MediaCodecList.ALL_CODECS).codecInfos.map { it.name }) },
        Source("features") { digest(context.packageManager.systemAvailableFeatures.map { "${it.name} ${it.reqGlEsVersion}" }) },
        Source("gpu") { gpu() },
    )

    private fun digest(lines: List<String>): String? =
        if (lines.isEmpty()) null else "${lines.size}:" + Texts.sha256Hex(lines.sorted().joinToString("\n")).substring(0, 32)

    private fun sensors(): List<String> =
        (context.getSystemService(Context.SENSOR_SERVICE) as SensorManager).getSensorList(Sensor.TYPE_ALL)
            .map { "${it.name}/${it.vendor}/${it.version}/${it.type}" }

    private fun cameras(): List<String> {
        val manager = context.getSystemService(Context.CAMERA_SERVICE) as CameraManager
        return manager.cameraIdList.map {
            val found = manager.getCameraCharacteristics(it)
            "$it/${found.get(CameraCharacteristics.LENS_FACING)}/${found.get(CameraCharacteristics.SENSOR_INFO_PIXEL_ARRAY_SIZE)}"
        }
    }

    private fun gpu(): Map<String, Any?>? {
        val display = EGL14.eglGetDisplay(EGL14.EGL_DEFAULT_DISPLAY)
        if (!EGL14.eglInitialize(display, IntArray(2), 0, IntArray(2), 1)) return null
        val configs = arrayOfNulls<EGLConfig>(1)
        val wanted = intArrayOf(EGL14.EGL_RENDERABLE_TYPE, EGL14.EGL_OPENGL_ES2_BIT, EGL14.EGL_SURFACE_TYPE, EGL14.EGL_PBUFFER_BIT, EGL14.EGL_NONE)
        if (!EGL14.eglChooseConfig(display, wanted, 0, configs, 0, 1, IntArray(1), 0) || configs[0] == null) return null
        val version = intArrayOf(EGL14.EGL_CONTEXT_CLIENT_VERSION, 2, EGL14.EGL_NONE)
        val context = EGL14.eglCreateContext(display, configs[0], EGL14.EGL_NO_CONTEXT, version, 0)
        val surface = EGL14.eglCreatePbufferSurface(display, configs[0], intArrayOf(EGL14.EGL_WIDTH, 1, EGL14.EGL_HEIGHT, 1, EGL14.EGL_NONE), 0)
        try {
            if (!EGL14.eglMakeCurrent(display, surface, surface, context)) return null
            return mapOf("vendor" to GLES20.glGetString(GLES20.GL_VENDOR), "renderer" to GLES20.glGetString(GLES20.GL_RENDERER))
        } finally {
            // The display is shared with the app: it is not terminated.
            EGL14.eglMakeCurrent(display, EGL14.EGL_NO_SURFACE, EGL14.EGL_NO_SURFACE, EGL14.EGL_NO_CONTEXT)
            EGL14.eglDestroySurface(display, surface)
            EGL14.eglDestroyContext(display, context)
        }
    }
}
