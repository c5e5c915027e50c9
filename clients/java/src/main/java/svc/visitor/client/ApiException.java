package svc.visitor.client;

import java.util.List;
import java.util.StringJoiner;

/** The service refused a request, or failed. */
public final class ApiException extends SvcException {
  private static final long serialVersionUID = 1;

  private final int status;
  private final String code;
  private final transient List<Types.DetailBody> details;
  private final String requestId;
  private final Long retryAfterS;

  ApiException(
      int status, String code, String message, List<Types.DetailBody> details, String requestId, Long retryAfterS) {
    super(status + " " + code + ": " + message + named(details), null);
    this.status = status;
    this.code = code;
    this.details = details;
    this.requestId = requestId;
    this.retryAfterS = retryAfterS;
  }

  /** For a response of a proxy, or of something else at this address. */
  static ApiException unexpected(int status, String requestId, Long retryAfterS) {
    String message = "The response is not one of this service.";
    return new ApiException(status, "unexpected_response", message, List.of(), requestId, retryAfterS);
  }

  private static String named(List<Types.DetailBody> details) {
    if (details == null || details.isEmpty()) return "";
    StringJoiner faults = new StringJoiner(", ", " (", ")");
    for (Types.DetailBody detail : details) {
      String field = detail.field() == null || detail.field().isEmpty() ? detail.location() : detail.field();
      faults.add(field + ": " + detail.issue());
    }
    return faults.toString();
  }

  /** Of the response. */
  public int status() {
    return status;
  }

  /** Such as {@code rate_limited}; {@code unexpected_response} where the response is not of this service. */
  public String code() {
    return code;
  }

  /** Each fault in the request; the message names them. */
  public List<Types.DetailBody> details() {
    return details == null ? List.of() : details;
  }

  /** Quote it to the operator; null where there is none. */
  public String requestId() {
    return requestId;
  }

  /** For how long the service asks to wait, in seconds; null where it does not ask. */
  public Long retryAfterS() {
    return retryAfterS;
  }
}
