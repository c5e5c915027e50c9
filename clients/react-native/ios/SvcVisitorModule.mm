// Not built yet: sources only.
#import "SvcVisitorModule.h"

#if __has_include(<SvcReactNative/SvcReactNative-Swift.h>)
#import <SvcReactNative/SvcReactNative-Swift.h>
#else
#import "SvcReactNative-Swift.h"
#endif

@implementation SvcVisitorModule {
  SvcVisitorBridge *_bridge;
}

+ (NSString *)moduleName {
  return @"SvcVisitor";
}

- (instancetype)init {
  if (self = [super init]) {
    _bridge = [SvcVisitorBridge new];
  }
  return self;
}

- (NSString *)configure:(NSString *)options {
  return [_bridge configure:options];
}

- (void)identify:(NSString *)call resolve:(RCTPromiseResolveBlock)resolve reject:(RCTPromiseRejectBlock)reject {
  [_bridge identify:call done:^(NSString *told) {
    resolve(told);
  }];
}

- (void)cancel:(NSString *)id {
  [_bridge cancel:id];
}

- (void)setLocationMocked:(NSString *)isMocked {
  [_bridge setLocationMocked:isMocked];
}

- (void)forget:(RCTPromiseResolveBlock)resolve reject:(RCTPromiseRejectBlock)reject {
  [_bridge forgetWithDone:^{
    resolve(nil);
  }];
}

- (std::shared_ptr<facebook::react::TurboModule>)getTurboModule:(const facebook::react::ObjCTurboModule::InitParams &)params {
  return std::make_shared<facebook::react::NativeSvcVisitorSpecJSI>(params);
}

@end
