package svc.visitor.client;

import java.time.Instant;

/** The action that is being served. */
public final class Action {
  final String origin;
  final String ip;
  final String tag;
  String accountId;
  String action;
  String platform;
  boolean isProven;
  Instant now;

  /**
   * {@code origin} is the page's, null for an app; {@code ip} is the address that is talking to you, null not to compare it;
   * {@code tag} is that of this action, best a random value of this session, null for none.
   */
  public Action(String origin, String ip, String tag) {
    this.origin = origin;
    this.ip = ip;
    this.tag = tag;
  }

  /**
   * That of your session; null does not compare it. {@code other_account} is the problem of another one, and of none. At a
   * sign-up there is none yet: {@code updateEvent} sets it.
   */
  public Action account(String id) {
    accountId = id;
    return this;
  }

  /** What is being served, such as {@code log_in}; null does not compare it. */
  public Action action(String name) {
    action = name;
    return this;
  }

  /**
   * By which it must have been scored: {@code web}, {@code android} or {@code ios}; null does not compare it. A report that
   * names another platform than its page or app is scored by other weights.
   */
  public Action platform(String name) {
    platform = name;
    return this;
  }

  /** Only a visit that its browser proved: {@code unproven} is the problem of another one. A first visit is never proven. */
  public Action proven() {
    isProven = true;
    return this;
  }

  /** The time, in place of that of the machine. */
  public Action now(Instant time) {
    now = time;
    return this;
  }

  Instant time() {
    return now == null ? Instant.now() : now;
  }
}
