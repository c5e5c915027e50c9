package svc.visitor

import org.objectweb.asm.AnnotationVisitor
import org.objectweb.asm.ClassReader
import org.objectweb.asm.ClassVisitor
import org.objectweb.asm.ClassWriter
import org.objectweb.asm.Label
import org.objectweb.asm.MethodVisitor
import org.objectweb.asm.Opcodes
import java.io.File

/**
 * The classes as they are published, in `target/packed`: without names of local variables, and without what Kotlin's compiler
 * notes in classes that apps do not name. Lines stay, for the traces of crashes.
 */
object Packing {
    val CLASSES = listOf("../core/target/classes", "target/classes").map { File(it) }
    val PACKED = File("target/packed")

    fun pack() {
        // For tests in another language that run Android's code.
        File("target/classpath.txt").writeText(System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path"))
        PACKED.deleteRecursively()
        for (folder in CLASSES) for (file in folder.walk().filter { it.isFile }) {
            val place = File(PACKED, file.relativeTo(folder).path)
            place.parentFile.mkdirs()
            place.writeBytes(if (file.extension == "class") packed(file.readBytes()) else file.readBytes())
        }
    }

    private fun packed(bytes: ByteArray): ByteArray {
        val writer = ClassWriter(0)
        ClassReader(bytes).accept(Stripped(writer), 0)
        return writer.toByteArray()
    }

    private class Stripped(next: ClassVisitor) : ClassVisitor(Opcodes.ASM9, next) {
        private var isNamed = false

        override fun visit(version: Int, access: Int, name: String, signature: String?, parent: String?, interfaces: Array<String>?) {
            isNamed = name.startsWith("svc/visitor/Svc")
            super.visit(version, access, name, signature, parent, interfaces)
        }

        override fun visitSource(source: String?, debug: String?) = super.visitSource(source, null)

        override fun visitAnnotation(descriptor: String, isVisible: Boolean): AnnotationVisitor? =
            if (!isNamed && descriptor == "Lkotlin/Metadata;") null else super.visitAnnotation(descriptor, isVisible)

        override fun visitMethod(access: Int, name: String, descriptor: String, signature: String?, exceptions: Array<String>?): MethodVisitor =
            object : MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, descriptor, signature, exceptions)) {
                override fun visitLocalVariable(name: String, descriptor: String, signature: String?, start: Label, end: Label, index: Int) {}
            }
    }
}
