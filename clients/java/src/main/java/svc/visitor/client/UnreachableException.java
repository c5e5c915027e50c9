package svc.visitor.client;

/** No response arrived: the connection failed or took too long. What was asked for may have been done. */
public final class UnreachableException extends SvcException {
  private static final long serialVersionUID = 1;

  private final boolean wasSent;

  UnreachableException(String message, boolean wasSent, Throwable cause) {
    super(message, cause);
    this.wasSent = wasSent;
  }

  /** False where there was no connection, so that nothing can have been done. */
  public boolean wasSent() {
    return wasSent;
  }
}
