package svc.visitor.client;

/** A delivery that is not authentic, or no webhook of this version. Answer {@code 401}, and do nothing else with it. */
public final class WebhookException extends SvcException {
  private static final long serialVersionUID = 1;

  WebhookException(String message) {
    super(message, null);
  }
}
