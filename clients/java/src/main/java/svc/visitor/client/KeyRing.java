package svc.visitor.client;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.NoSuchAlgorithmException;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The published keys of one organization. Times are those of {@code System.nanoTime}. */
final class KeyRing {
  private static final String TYPE = "svc-verdict+jwt";
  private static final long KEYS_VALID_NS = 3_600_000_000_000L;

  /** Between two readings because of a key that is not known: made-up ones cost the service no requests. */
  private static final long READ_AGAIN_NS = 60_000_000_000L;

  /** What stands before the 32 bytes of a key (RFC 8410). */
  private static final byte[] PREFIX = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

  private static final int KEY_BYTES = 32;

  private Map<String, PublicKey> keys = new HashMap<>();
  private Long readAt;

  /** Whether the keys must be read before this token is checked. */
  synchronized boolean mustBeRead(String token, long now) {
    String kid = keyId(token);
    if (kid == null) return false;
    if (readAt == null || now - readAt >= KEYS_VALID_NS) return true;
    return !keys.containsKey(kid) && now - readAt >= READ_AGAIN_NS;
  }

  /**
   * Keeps what was read in place of what is kept. Throws {@code ApiException} where it has not the form of keys; one of
   * another kind is left out.
   */
  synchronized void put(Object published, long now) {
    if (!(published instanceof List)) throw ApiException.unexpected(200, null, null);
    Map<String, PublicKey> found = new HashMap<>();
    for (Object one : (List<?>) published) {
      Map<?, ?> key = one instanceof Map ? (Map<?, ?>) one : Map.of();
      for (String name : List.of("kty", "crv", "kid", "x")) {
        if (!(key.get(name) instanceof String)) throw ApiException.unexpected(200, null, null);
      }
      byte[] content = decoded((String) key.get("x"));
      boolean isOurs = "OKP".equals(key.get("kty")) && "Ed25519".equals(key.get("crv"));
      if (isOurs && content != null && content.length == KEY_BYTES) found.put((String) key.get("kid"), imported(content));
    }
    keys = found;
    readAt = now;
  }

  private static PublicKey imported(byte[] content) {
    byte[] encoded = new byte[PREFIX.length + KEY_BYTES];
    System.arraycopy(PREFIX, 0, encoded, 0, PREFIX.length);
    System.arraycopy(content, 0, encoded, PREFIX.length, KEY_BYTES);
    try {
      return KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded));
    } catch (NoSuchAlgorithmException error) {
      throw new UnsupportedOperationException("signed verdicts need Java 15, or a provider of Ed25519", error);
    } catch (GeneralSecurityException error) {
      throw new SvcException("a published key is none", error);
    }
  }

  /** Every check but that of the first use. */
  Checked<Verdict> check(String token, String organizationId, String environment, Action action) {
    Verdict verdict = verified(token);
    boolean isOurs =
        verdict != null
            && verdict.organizationId().equals(organizationId)
            && verdict.environment().equals(environment);
    if (!isOurs) return new Checked<>(List.of("invalid"), null, action.allowsUnknown);
    Instant now = action.time();
    boolean isBegun = now.isAfter(Instant.ofEpochSecond(verdict.issuedAt()).minus(Checks.CLOCK_SKEW));
    boolean isAlive = isBegun && now.isBefore(Instant.ofEpochSecond(verdict.expiresAt()));
    List<String> problems = isAlive ? Checks.differences(verdict, action) : List.of("too_old");
    return new Checked<>(problems, verdict, action.allowsUnknown);
  }

  private Verdict verified(String token) {
    PublicKey key;
    synchronized (this) {
      key = keys.get(keyId(token));
    }
    if (key == null) return null;
    int end = token.lastIndexOf('.');
    byte[] signature = decoded(token.substring(end + 1));
    byte[] claims = decoded(token.substring(token.indexOf('.') + 1, end));
    if (signature == null || claims == null) return null;
    try {
      Signature verifier = Signature.getInstance("Ed25519");
      verifier.initVerify(key);
      verifier.update(token.substring(0, end).getBytes(StandardCharsets.US_ASCII));
      if (!verifier.verify(signature)) return null;
      Object read = Json.read(claims);
      if (!(read instanceof Map)) return null;
      Verdict said = new Verdict(Body.fieldsOf(read));
      return Checks.hasForm(said, List.of("aud", "jti", "environment"), List.of("iat", "exp")) ? said : null;
    } catch (GeneralSecurityException | SvcException | IllegalArgumentException notSigned) {
      return null;
    }
  }

  /** The key that a token says it is signed by; null for what is no verdict. */
  private static String keyId(String token) {
    if (token == null || !token.matches("[\\w-]+\\.[\\w-]+\\.[\\w-]+")) return null;
    byte[] header = decoded(token.substring(0, token.indexOf('.')));
    if (header == null) return null;
    try {
      Object read = Json.read(header);
      if (!(read instanceof Map)) return null;
      Map<?, ?> fields = (Map<?, ?>) read;
      boolean isVerdict = "EdDSA".equals(fields.get("alg")) && TYPE.equals(fields.get("typ")) && !fields.containsKey("crit");
      return isVerdict && fields.get("kid") instanceof String ? (String) fields.get("kid") : null;
    } catch (IllegalArgumentException noJson) {
      return null;
    }
  }

  /**
   * Bytes from base64url in its one spelling, without padding (RFC 7515, section 2); null for another text of the same
   * bytes: two texts of one verdict would pass for two.
   */
  private static byte[] decoded(String text) {
    try {
      byte[] content = Base64.getUrlDecoder().decode(text);
      return Base64.getUrlEncoder().withoutPadding().encodeToString(content).equals(text) ? content : null;
    } catch (IllegalArgumentException noBase64) {
      return null;
    }
  }
}
