package svc.visitor.client;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The check of webhook deliveries. */
public final class Webhooks {
  private static final Duration TOLERANCE = Duration.ofMinutes(5);

  private Webhooks() {}

  /**
   * The event of an authentic delivery; throws {@link WebhookException} for any other.
   *
   * <p>{@code body} is the exact bytes that arrived. {@code header} returns a header of the request by its name, or null,
   * such as {@code request::getHeader} of a servlet. {@code secrets} has the endpoint's signing secret, two while you
   * rotate.
   */
  public static WebhookEvent verify(byte[] body, UnaryOperator<String> header, String... secrets) {
    return verify(body, header, List.of(secrets), Instant.now());
  }

  static WebhookEvent verify(byte[] body, UnaryOperator<String> header, Collection<String> secrets, Instant now) {
    String timestamp = header.apply("x-svc-timestamp");
    if (timestamp == null || !timestamp.matches("[0-9]{1,12}")) {
      throw new WebhookException("the delivery has no timestamp");
    }
    Instant signedAt = Instant.ofEpochSecond(Long.parseLong(timestamp));
    if (Duration.between(signedAt, now).abs().compareTo(TOLERANCE) > 0) {
      throw new WebhookException("the delivery was signed more than 300 seconds from now");
    }
    String signature = header.apply("x-svc-signature");
    if (signature == null || !isSigned(body, timestamp, signature, secrets)) {
      throw new WebhookException("the signature is by none of the secrets");
    }
    return event(body);
  }

  private static boolean isSigned(byte[] body, String timestamp, String signature, Collection<String> secrets) {
    for (String secret : secrets) {
      if (secret.isBlank()) continue;
      byte[] expected = signed(secret.strip(), timestamp, body).getBytes(StandardCharsets.UTF_8);
      for (String part : signature.split(",")) {
        if (MessageDigest.isEqual(expected, part.strip().getBytes(StandardCharsets.UTF_8))) return true;
      }
    }
    return false;
  }

  private static String signed(String secret, String timestamp, byte[] body) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      mac.update((timestamp + ".").getBytes(StandardCharsets.UTF_8));
      StringBuilder made = new StringBuilder("sha256=");
      for (byte one : mac.doFinal(body)) made.append(String.format("%02x", one));
      return made.toString();
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("every Java has HmacSHA256", error);
    }
  }

  private static WebhookEvent event(byte[] body) {
    Object read;
    try {
      read = Json.read(body);
    } catch (IllegalArgumentException noJson) {
      throw new WebhookException("the body is not an event");
    }
    if (!(read instanceof Map)) throw new WebhookException("the body is not an event");
    WebhookEvent event = new WebhookEvent(Body.fieldsOf(read));
    boolean isFirstVersion = Json.isWhole(event.get("version")) && event.integerAt("version") == 1;
    boolean hasTexts = Checks.isText(event.get("id")) && Checks.isText(event.get("type"));
    if (!isFirstVersion || !hasTexts || !(event.get("data") instanceof Map)) {
      throw new WebhookException("the body is not an event of version 1");
    }
    return event;
  }
}
