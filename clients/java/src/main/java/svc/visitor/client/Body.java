package svc.visitor.client;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** An object of JSON, by the names that it has in the API. */
public abstract class Body {
  private final Map<String, Object> fields;

  Body() {
    fields = new LinkedHashMap<>();
  }

  Body(Map<String, Object> fields) {
    this.fields = new LinkedHashMap<>(fields);
  }

  /** Every field as it was read or set: texts, {@code Long}, {@code Double}, {@code Boolean}, lists, maps and null. */
  public final Map<String, Object> fields() {
    return Collections.unmodifiableMap(fields);
  }

  /** A field by its name in the API, also one that this version of the library does not know. */
  public final Object get(String name) {
    return fields.get(name);
  }

  final void setField(String name, Object value) {
    fields.put(name, value);
  }

  final String textAt(String name) {
    return textOf(get(name));
  }

  final Long integerAt(String name) {
    return integerOf(get(name));
  }

  final Double numberAt(String name) {
    return numberOf(get(name));
  }

  final Boolean flagAt(String name) {
    return flagOf(get(name));
  }

  final <T> T bodyAt(String name, Function<Map<String, Object>, T> made) {
    Object value = get(name);
    return value == null ? null : made.apply(fieldsOf(value));
  }

  final <T> List<T> listAt(String name, Function<Object, T> made) {
    Object value = get(name);
    if (value == null) return null;
    List<T> found = new ArrayList<>();
    for (Object one : as(List.class, value)) found.add(made.apply(one));
    return found;
  }

  final <T> Map<String, T> mapAt(String name, Function<Object, T> made) {
    Object value = get(name);
    if (value == null) return null;
    Map<String, T> found = new LinkedHashMap<>();
    fieldsOf(value).forEach((key, one) -> found.put(key, made.apply(one)));
    return found;
  }

  static String textOf(Object value) {
    return as(String.class, value);
  }

  static Long integerOf(Object value) {
    Number number = as(Number.class, value);
    return number == null ? null : number.longValue();
  }

  static Double numberOf(Object value) {
    Number number = as(Number.class, value);
    return number == null ? null : number.doubleValue();
  }

  static Boolean flagOf(Object value) {
    return as(Boolean.class, value);
  }

  @SuppressWarnings("unchecked") // keys of an object of JSON are texts
  static Map<String, Object> fieldsOf(Object value) {
    return value instanceof Body ? ((Body) value).fields() : as(Map.class, value);
  }

  private static <T> T as(Class<T> kind, Object value) {
    if (value == null || kind.isInstance(value)) return kind.cast(value);
    throw new SvcException("a field is a " + value.getClass().getSimpleName() + ", not a " + kind.getSimpleName(), null);
  }

  @Override
  public String toString() {
    return Json.write(fields);
  }
}
