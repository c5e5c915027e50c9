package svc.visitor;

import android.content.Context;

/** The guide's calls, as Java makes them: that this compiles is the test. */
final class JavaUse {
    private JavaUse() {}

    static SvcCancellable use(Context context, String tag) throws SvcException {
        SvcOptions options = new SvcOptions.Builder("svc_pk_...", "https://id.shop.example")
                .alsoAt("https://other.shop.example")
                .attestation(SvcAttestation.WHEN_POSSIBLE)
                .minimal(true)
                .build();
        SvcVisitor visitor = SvcVisitor.create(context, options);
        visitor.forget(null);
        SvcRequest request = new SvcRequest.Builder().tag(tag).action("log_in").timeoutMs(3_000L).build();
        return visitor.identify(request, new SvcCallback() {
            @Override
            public void onSuccess(SvcIdentification result) {
                String ignored = result.getRequestId() + result.getVisitorId() + result.getJson();
            }

            @Override
            public void onFailure(SvcException error) {
                String ignored = error.getCode() + error.getRetryAfterMs();
            }
        });
    }
}
