package svc.visitor.client;

import java.io.ByteArrayOutputStream;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** The body of a response, null where it is longer than a limit. */
final class LimitedBody implements BodySubscriber<byte[]> {
  private final int limit;
  private final ByteArrayOutputStream content = new ByteArrayOutputStream();
  private final CompletableFuture<byte[]> whole = new CompletableFuture<>();
  private Flow.Subscription subscription;

  LimitedBody(int limit) {
    this.limit = limit;
  }

  @Override
  public CompletionStage<byte[]> getBody() {
    return whole;
  }

  @Override
  public void onSubscribe(Flow.Subscription begun) {
    subscription = begun;
    subscription.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> chunks) {
    for (ByteBuffer chunk : chunks) {
      if (whole.isDone()) return;
      if (content.size() + chunk.remaining() > limit) {
        subscription.cancel();
        whole.complete(null);
        return;
      }
      byte[] bytes = new byte[chunk.remaining()];
      chunk.get(bytes);
      content.write(bytes, 0, bytes.length);
    }
  }

  @Override
  public void onError(Throwable cause) {
    whole.completeExceptionally(cause);
  }

  @Override
  public void onComplete() {
    whole.complete(content.toByteArray());
  }
}
