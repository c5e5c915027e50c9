package svc.visitor.client;

/** Any error of this library. */
public class SvcException extends RuntimeException {
  private static final long serialVersionUID = 1;

  SvcException(String message, Throwable cause) {
    super(message, cause);
  }
}
