package svc.visitor.client;

import java.util.Map;

/**
 * What a signed verdict says, by the names of its claims. Services before 0.3.0 leave out {@code accountId}, {@code action},
 * {@code proven} and {@code decision}.
 */
public final class Verdict extends Body {
  Verdict(Map<String, Object> claims) {
    super(claims);
  }

  /** Whose it is. */
  public String organizationId() {
    return textAt("aud");
  }

  /** Of the visitor. */
  public String visitorId() {
    return textAt("sub");
  }

  /** Accept it once. */
  public String requestId() {
    return textAt("jti");
  }

  /** Unix time in seconds. */
  public Long issuedAt() {
    return integerAt("iat");
  }

  /** Unix time in seconds. */
  public Long expiresAt() {
    return integerAt("exp");
  }

  /** {@code production}, {@code staging} or {@code development}. */
  public String environment() {
    return textAt("environment");
  }

  /** Null when not scored, and so is the score. */
  public String suspectLevel() {
    return textAt("suspect_level");
  }

  /** From 0 to 100. */
  public Long suspectScore() {
    return integerAt("suspect_score");
  }

  /** Whether the organization sees this visitor for the first time. */
  public Boolean visitorIsNew() {
    return flagAt("visitor_is_new");
  }

  /** From 0 to 100. */
  public Long visitorConfidence() {
    return integerAt("visitor_confidence");
  }

  /** What the rules of the organization decided; null where none matched. */
  public Types.DecisionBody decision() {
    return bodyAt("decision", Types.DecisionBody::new);
  }
}
