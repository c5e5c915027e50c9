package svc.visitor.client;

import java.util.Map;

/** What a delivery says. */
public final class WebhookEvent extends Body {
  WebhookEvent(Map<String, Object> fields) {
    super(fields);
  }

  /** The same on every attempt: skip those that you know. */
  public String id() {
    return textAt("id");
  }

  /** Such as {@code identification.completed}. */
  public String type() {
    return textAt("type");
  }

  /** Whose it is. */
  public String organizationId() {
    return textAt("organization_id");
  }

  /** {@code live} or {@code test}. */
  public String environment() {
    return textAt("environment");
  }

  /** When the fact happened, RFC 3339 in UTC. */
  public String createdAt() {
    return textAt("created_at");
  }

  /** Of {@code identification.completed} and {@code visitor.suspect}, the fields of a {@link Types.EventBody}. */
  public Map<String, Object> data() {
    return mapAt("data", value -> value);
  }
}
