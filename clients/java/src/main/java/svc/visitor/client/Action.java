package svc.visitor.client;

import java.time.Instant;

/** The action that is being served. */
public final class Action {
  final String origin;
  final String tag;
  String ip;
  String accountId;
  String action;
  String platform;
  boolean isProven;
  boolean isNetworkEnough;
  boolean allowsUnknown;
  Instant now;

  /**
   * {@code origin} is the page's, null for an app; {@code tag} is that of this action, best a random value of this session,
   * null for none.
   */
  public Action(String origin, String tag) {
    this(origin, null, tag);
  }

  /** As above, with {@link #ip}. */
  public Action(String origin, String ip, String tag) {
    this.origin = origin;
    this.ip = ip;
    this.tag = tag;
  }

  /**
   * The address that is talking to you, to compare it; null does not. {@code other_address} asks for a second factor, and
   * honest visitors have it who reach the service by IPv6 and you by IPv4.
   */
  public Action ip(String address) {
    ip = address;
    return this;
  }

  /**
   * It is enough that the address is of the same network, of IPv4 the /24 and of IPv6 the /48: {@code other_network} takes
   * the place of {@code other_address}.
   */
  public Action sameNetwork() {
    isNetworkEnough = true;
    return this;
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

  /**
   * Asks for a visit that its browser proved: {@code unproven} asks for a second factor. A first visit is never proven: it
   * brings the key that later ones are compared with.
   */
  public Action proven() {
    isProven = true;
    return this;
  }

  /**
   * Accepts a visitor that is new (confidence 0), or the same by all that is known and not proven (85 to 89), as after its
   * storage was cleared. For a sign-up: no {@code not_known}.
   */
  public Action allowUnknown() {
    allowsUnknown = true;
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
