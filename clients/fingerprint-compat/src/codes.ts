/** The codes of agent v4 that this package uses. Those of v3 follow from them. */
export type Code =
  | "api_key_missing"
  | "api_key_invalid"
  | "invalid_endpoint"
  | "cache_misconfigured"
  | "script_load_fail"
  | "client_timeout"
  | "network_connection"
  | "network_abort"
  | "csp_block"
  | "bad_response_format"
  | "public_api_key_not_found"
  | "subscription_not_active"
  | "too_many_requests"
  | "request_cannot_be_parsed"
  | "payload_too_large"
  | "failed";
