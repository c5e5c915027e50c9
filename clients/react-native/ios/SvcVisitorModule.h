// Not built yet: sources only.
#import <SvcVisitorSpec/SvcVisitorSpec.h>

@interface SvcVisitorModule : NSObject <NativeSvcVisitorSpec>
@end
