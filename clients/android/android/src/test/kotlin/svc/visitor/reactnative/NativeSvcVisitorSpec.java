
/** Made by React Native's code generator from the contract of the module: not to be edited. */

package svc.visitor.reactnative;

import com.facebook.proguard.annotations.DoNotStrip;
import com.facebook.react.bridge.Promise;
import com.facebook.react.bridge.ReactApplicationContext;
import com.facebook.react.bridge.ReactContextBaseJavaModule;
import com.facebook.react.bridge.ReactMethod;
import com.facebook.react.turbomodule.core.interfaces.TurboModule;
import javax.annotation.Nonnull;

public abstract class NativeSvcVisitorSpec extends ReactContextBaseJavaModule implements TurboModule {
  public static final String NAME = "SvcVisitor";

  public NativeSvcVisitorSpec(ReactApplicationContext reactContext) {
    super(reactContext);
  }

  @Override
  public @Nonnull String getName() {
    return NAME;
  }

  @ReactMethod(isBlockingSynchronousMethod = true)
  @DoNotStrip
  public abstract String configure(String options);

  @ReactMethod
  @DoNotStrip
  public abstract void identify(String call, Promise promise);

  @ReactMethod
  @DoNotStrip
  public abstract void cancel(String id);

  @ReactMethod
  @DoNotStrip
  public abstract void setLocationMocked(String isMocked);

  @ReactMethod
  @DoNotStrip
  public abstract void forget(Promise promise);
}
