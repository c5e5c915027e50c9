package svc.visitor.reactnative

import com.facebook.react.BaseReactPackage
import com.facebook.react.bridge.NativeModule
import com.facebook.react.bridge.ReactApplicationContext
import com.facebook.react.module.model.ReactModuleInfo
import com.facebook.react.module.model.ReactModuleInfoProvider

/** Names the module to React Native. */
class SvcVisitorPackage : BaseReactPackage() {
    override fun getModule(name: String, reactContext: ReactApplicationContext): NativeModule? =
        if (name == NativeSvcVisitorSpec.NAME) SvcVisitorModule(reactContext) else null

    override fun getReactModuleInfoProvider() = ReactModuleInfoProvider {
        val name = NativeSvcVisitorSpec.NAME
        mapOf(name to ReactModuleInfo(name, SvcVisitorModule::class.java.name, false, false, false, true))
    }
}
