package svc.visitor.client;

import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.ByteBuffer;
import java.util.concurrent.Flow;

/**
 * The body of a request, which notes that it was asked for. Its length is, for the headers, once there is a connection: before,
 * nothing was sent.
 */
final class NotedBody implements BodyPublisher {
  private final BodyPublisher content;
  private volatile boolean wasAsked;

  /** Empty for none. */
  NotedBody(String text) {
    content = text.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(text);
  }

  boolean wasAsked() {
    return wasAsked;
  }

  @Override
  public long contentLength() {
    wasAsked = true;
    return content.contentLength();
  }

  @Override
  public void subscribe(Flow.Subscriber<? super ByteBuffer> subscriber) {
    wasAsked = true;
    content.subscribe(subscriber);
  }
}
