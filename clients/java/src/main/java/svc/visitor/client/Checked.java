package svc.visitor.client;

import java.util.List;
import java.util.Map;

/** What came of the checks of an event or of a signed verdict: it belongs to an action, or there is a problem. */
public final class Checked<T extends Body> {
  private final List<String> problems;
  private final T found;
  private final Map<String, Decision> against;

  Checked(List<String> problems, T found, boolean allowsUnknown) {
    this.problems = problems;
    this.found = found;
    this.against = Checks.against(problems, found, allowsUnknown);
  }

  /**
   * Why it does not belong to the action, such as {@code too_old}; null where it does. Others may be added. {@code
   * other_address}, {@code other_network} and {@code unproven} are weak: honest visitors have them, too, and they ask for a
   * second factor.
   */
  public String problem() {
    return problems.isEmpty() ? null : problems.get(0);
  }

  boolean mayCount() {
    return Checks.mayCount(problems);
  }

  /**
   * The event or verdict, also beside a problem, for the log: rely on it only where there is none, or after a second factor
   * where the decision asks for one. Null where there is no such event, and where the signature does not hold.
   */
  public T found() {
    return found;
  }

  /**
   * What to do: the stricter of what the checks and the level say and of what a rule decided. {@code REFUSE} where the
   * identification is of another action.
   */
  public Decision decision() {
    return Checks.strictest(against);
  }

  /**
   * Why it is not {@code ACCEPT}, what decided first; empty if it is. {@code rule:} and the name of the rule that blocked or
   * challenged; {@code level:} and the level; a problem; {@code not_scored}, {@code not_identifiable}, {@code not_known}.
   * Others may follow.
   */
  public List<String> reasons() {
    return List.copyOf(against.keySet());
  }
}
