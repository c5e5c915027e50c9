package svc.visitor.client;

/** What to do about an action. */
public enum Decision {
  /** Let it pass. */
  ACCEPT,
  /** Ask for a second factor. */
  VERIFY,
  /** Turn it away. */
  REFUSE
}
