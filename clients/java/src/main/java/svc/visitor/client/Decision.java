package svc.visitor.client;

/** What to do about a log-in. */
public enum Decision {
  /** Let it in. */
  ACCEPT,
  /** Ask for a second factor. */
  VERIFY,
  /** Turn it away. */
  REFUSE
}
