package svc.visitor

import com.android.tools.r8.D8
import com.android.tools.r8.D8Command
import com.android.tools.r8.OutputMode
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** What Android would load. */
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
}
