package svc.visitor.client;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON (RFC 8259) as maps, lists, texts, {@code Long}, {@code Double}, {@code Boolean} and null. */
final class Json {
  private static final int DEEPEST = 100;
  private static final long MAX_INTEGER = (1L << 53) - 1;

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** As below, of UTF-8 without a byte order mark. */
  static Object read(byte[] text) {
    try {
      return read(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(text)).toString());
    } catch (CharacterCodingException noText) {
      throw new IllegalArgumentException("no JSON: no UTF-8", noText);
    }
  }

  /**
   * Throws {@code IllegalArgumentException} for what is no JSON, such as half of a surrogate pair, or nested deeper than 100
   * times. Of two fields of one name the last one counts.
   */
  static Object read(String text) {
    Json reader = new Json(text);
    Object value = reader.value();
    reader.skipBlanks();
    if (reader.at < text.length()) throw reader.fault();
    return value;
  }

  private IllegalArgumentException fault() {
    return new IllegalArgumentException("no JSON at " + at);
  }

  private char peek() {
    if (at >= text.length()) throw fault();
    return text.charAt(at);
  }

  private void skipBlanks() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) at++;
  }

  private boolean took(char wanted) {
    skipBlanks();
    if (peek() != wanted) return false;
    at++;
    return true;
  }

  private Object value() {
    skipBlanks();
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return list();
      case '"':
        return string();
      case 't':
        return literal("true", Boolean.TRUE);
      case 'f':
        return literal("false", Boolean.FALSE);
      case 'n':
        return literal("null", null);
      default:
        return number();
    }
  }

  private Object literal(String word, Object value) {
    if (!text.startsWith(word, at)) throw fault();
    at += word.length();
    return value;
  }

  private Map<String, Object> object() {
    Map<String, Object> found = new LinkedHashMap<>();
    begin();
    if (!took('}')) {
      do {
        skipBlanks();
        if (peek() != '"') throw fault();
        String name = string();
        if (!took(':')) throw fault();
        found.put(name, value());
      } while (took(','));
      if (!took('}')) throw fault();
    }
    depth--;
    return found;
  }

  private List<Object> list() {
    List<Object> found = new ArrayList<>();
    begin();
    if (!took(']')) {
      do {
        found.add(value());
      } while (took(','));
      if (!took(']')) throw fault();
    }
    depth--;
    return found;
  }

  private void begin() {
    if (++depth > DEEPEST) throw fault();
    at++;
  }

  private String string() {
    StringBuilder found = new StringBuilder();
    for (at++; peek() != '"'; at++) {
      char one = peek();
      if (one < 0x20) throw fault();
      found.append(one == '\\' ? escaped() : one);
    }
    at++;
    boolean isText = found.codePoints().noneMatch(one -> one >= Character.MIN_SURROGATE && one <= Character.MAX_SURROGATE);
    if (!isText) throw fault();
    return found.toString();
  }

  private char escaped() {
    at++;
    int plain = "\"\\/bfnrt".indexOf(peek());
    if (plain >= 0) return "\"\\/\b\f\n\r\t".charAt(plain);
    if (peek() != 'u' || at + 4 >= text.length()) throw fault();
    int unit = 0;
    for (int end = at + 4; at < end; ) {
      int digit = Character.digit(text.charAt(++at), 16);
      if (digit < 0 || text.charAt(at) > 'f') throw fault();
      unit = unit * 16 + digit;
    }
    return (char) unit;
  }

  private Number number() {
    int begin = at;
    if (peek() == '-') at++;
    if (peek() == '0') at++;
    else digits();
    boolean isWhole = true;
    if (at < text.length() && text.charAt(at) == '.') {
      isWhole = false;
      at++;
      digits();
    }
    if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
      isWhole = false;
      at++;
      if (peek() == '+' || peek() == '-') at++;
      digits();
    }
    String found = text.substring(begin, at);
    try {
      if (isWhole) return Long.valueOf(found);
    } catch (NumberFormatException tooLong) {
      // as other readers have it
    }
    return Double.valueOf(found);
  }

  private void digits() {
    int begin = at;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') at++;
    if (at == begin) throw fault();
  }

  /** Whether a value is a whole number, in any notation, that every reader of JSON has exactly (RFC 8259, section 6). */
  static boolean isWhole(Object value) {
    if (value instanceof Long) return Math.abs((Long) value) <= MAX_INTEGER && (Long) value != Long.MIN_VALUE;
    if (!(value instanceof Double)) return false;
    double number = (Double) value;
    return number == Math.rint(number) && Math.abs(number) <= MAX_INTEGER;
  }

  /** Throws {@code IllegalArgumentException} for what JSON has no form for. */
  static String write(Object value) {
    StringBuilder made = new StringBuilder();
    write(value, made);
    return made.toString();
  }

  private static void write(Object value, StringBuilder made) {
    if (value instanceof Body) value = ((Body) value).fields();
    if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
      made.append(value);
    } else if (value instanceof CharSequence) {
      quote(value.toString(), made);
    } else if (value instanceof Number) {
      double number = ((Number) value).doubleValue();
      if (Double.isNaN(number) || Double.isInfinite(number)) throw new IllegalArgumentException(value + " is not JSON");
      made.append(value);
    } else if (value instanceof Map) {
      char before = '{';
      if (((Map<?, ?>) value).isEmpty()) made.append(before);
      for (Map.Entry<?, ?> one : ((Map<?, ?>) value).entrySet()) {
        made.append(before);
        quote(String.valueOf(one.getKey()), made);
        made.append(':');
        write(one.getValue(), made);
        before = ',';
      }
      made.append('}');
    } else if (value instanceof Iterable) {
      String before = "";
      made.append('[');
      for (Object one : (Iterable<?>) value) {
        made.append(before);
        write(one, made);
        before = ",";
      }
      made.append(']');
    } else {
      throw new IllegalArgumentException(value.getClass() + " is not JSON");
    }
  }

  /** In ASCII, so that it may be a header, too. */
  private static void quote(String text, StringBuilder made) {
    made.append('"');
    for (char one : text.toCharArray()) {
      if (one == '"' || one == '\\') made.append('\\').append(one);
      else if (one < 0x20 || one > 0x7e) made.append(String.format("\\u%04x", (int) one));
      else made.append(one);
    }
    made.append('"');
  }
}
