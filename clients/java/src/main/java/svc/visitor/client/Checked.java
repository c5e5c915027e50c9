package svc.visitor.client;

/** What came of the checks of an event or of a signed verdict: it belongs to an action, or there is a problem. */
public final class Checked<T extends Body> {
  private final String problem;
  private final T found;

  Checked(String problem, T found) {
    this.problem = problem;
    this.found = found;
  }

  /** Why it does not belong to the action, such as {@code too_old}; null where it does. Others may be added. */
  public String problem() {
    return problem;
  }

  /**
   * The event or verdict, also beside a problem, for the log: rely on it only where there is none. Null where there is no
   * such event, and where the signature does not hold.
   */
  public T found() {
    return found;
  }

  /** What the backend guide does with it at a log-in; an identification with a problem is refused. */
  public Decision decision() {
    return problem != null || found == null ? Decision.REFUSE : Checks.decide(found);
  }
}
