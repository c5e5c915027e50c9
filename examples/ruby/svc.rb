# frozen_string_literal: true

# A recipe to copy: reads and checks an identification, and verifies webhooks and signed verdicts. Ruby 3.0 or later, with
# nothing but its standard library.

require "base64"
require "date"
require "ipaddr"
require "json"
require "net/http"
require "openssl"
require "resolv"
require "time"
require "timeout"
require "zlib"

module Svc
  MAX_AGE_S = 300
  CLOCK_SKEW_S = 30
  # Problems that honest visitors have, too: they ask for a second factor. With any other one, the event is refused.
  WEAK = %w[other_address other_network unproven].freeze
  REQUEST_ID = /\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/
  TIME = /\A([1-9][0-9]{3}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])\z/
  MAX_BYTES = 16 * 2**20
  DEEPEST = 100
  # JSON (RFC 8259): Ruby's reader takes comments and some escapes that are none.
  JSON_FORM = /\A(?<blank>[ \t\r\n]*+)\{\g<members>\}\g<blank>\z
    (?<members>\g<blank>(\g<member>(,\g<member>)*+)?+){0}
    (?<member>\g<blank>\g<string>\g<blank>:\g<value>){0}
    (?<value>\g<blank>(\{\g<members>\}|\[\g<blank>(\g<value>(,\g<value>)*+)?+\]|\g<string>|\g<number>|true|false|null)\g<blank>){0}
    (?<string>"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u\g<unit>))*+"){0}
    (?<unit>[dD][89abAB]\h{2}\\u[dD][c-fC-F]\h{2}|(?![dD][89a-fA-F])\h{4}){0}
    (?<number>-?(0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?){0}/x
  # What Net::HTTP raises where there is no response.
  NO_RESPONSE = [
    IOError, SystemCallError, SocketError, Timeout::Error, Net::ProtocolError, Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError,
    OpenSSL::SSL::SSLError,
  ].freeze
  # What stands before the 32 bytes of an Ed25519 key (RFC 8410).
  KEY_PREFIX = ["302a300506032b6570032100"].pack("H*").freeze

  class Refused < StandardError; end

  module_function

  # The event of a request id that the visitor's client handed over, which may be anything; nil where there is none. Raises
  # Refused where the service refuses or has not responded within a time limit: decide beforehand what goes on then.
  def event(base_url, secret_key, request_id, timeout_s: 5)
    return nil unless request_id.is_a?(String) && REQUEST_ID.match?(request_id)

    event_of(request_id, *get("#{base_url}/api/v1/events/#{request_id}", timeout_s, "x-api-key" => secret_key.strip))
  end

  # The event in a response.
  def event_of(request_id, status, text)
    body = json(text)
    code = status == 200 ? nil : code(body)
    return nil if %w[event_not_found invalid_request_id].include?(code)
    return body if status == 200 && body && body["request_id"] == request_id

    raise Refused, "status #{status} #{code || "unexpected_response"}"
  end

  # The published keys of an organization. Keep them for an hour, and ask again for an unknown kid once a minute at most.
  def verdict_keys(base_url, organization_id, timeout_s: 5)
    id = URI.encode_www_form_component(organization_id)
    keys_of(*get("#{base_url}/api/v1/organizations/#{id}/verdict-keys", timeout_s))
  end

  # The keys in a response.
  def keys_of(status, text)
    body = json(text)
    keys = body && body["keys"]
    is_key = ->(key) { key.is_a?(Hash) && key.values_at("kty", "crv", "kid", "x").all?(String) }
    return keys if status == 200 && keys.is_a?(Array) && keys.all?(&is_key)

    raise Refused, "status #{status} #{status == 200 ? "unexpected_response" : code(body)}"
  end

  # The code of an error; "unexpected_response" for what has not the form of one.
  def code(body)
    error = body && body["error"]
    return "unexpected_response" unless error.is_a?(Hash) && error.values_at("code", "message").all?(String)

    details = error["details"] || (error["details"].nil? ? [] : nil)
    is_detail = ->(one) { one.is_a?(Hash) && one.values_at("field", "issue", "location").compact.all?(String) }
    is_error = error["code"] != "" && details.is_a?(Array) && details.all?(&is_detail)
    is_error ? error["code"] : "unexpected_response"
  end

  # The object of a text of JSON in UTF-8, nested at most 100 levels deep; nil for any other text. Of two fields of one name
  # the last one counts.
  def json(text)
    text = text.dup.force_encoding(Encoding::UTF_8)
    return nil unless text.valid_encoding? && depth(text) <= DEEPEST && JSON_FORM.match?(text)

    JSON.parse(text, max_nesting: DEEPEST)
  rescue JSON::ParserError
    nil
  end

  # How deep brackets are nested, so that no form is looked for in what is nested for its own sake.
  def depth(text)
    open = 0
    text.scan(/"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]/m).map { |one| open += { "[" => 1, "{" => 1, "]" => -1, "}" => -1 }.fetch(one, 0) }.max.to_i
  end

  # Whether a value is a whole number, in any notation, that every reader of JSON has exactly (RFC 8259, section 6).
  def whole?(value)
    (value.is_a?(Integer) || (value.is_a?(Float) && value.finite? && value == value.floor)) && value.abs < 2**53
  end

  # Status and text of a response, which must be here within the time limit.
  def get(url, timeout_s, headers = {})
    address = URI(url)
    limits = { open_timeout: timeout_s, read_timeout: timeout_s, max_retries: 0 }
    text = +""
    Timeout.timeout(timeout_s, Timeout::Error) do
      Net::HTTP.start(address.host, address.port, use_ssl: address.scheme == "https", **limits) do |http|
        http.request_get(address.request_uri, headers) do |response|
          length = response["content-encoding"] ? 0 : response.content_length.to_i
          response.read_body do |chunk|
            text << chunk
            return [response.code.to_i, ""] if text.bytesize > MAX_BYTES
          end
          raise EOFError, "the body ends early" if text.bytesize < length

          return [response.code.to_i, text]
        rescue Zlib::Error
          return [response.code.to_i, ""]
        end
      end
    end
  rescue *NO_RESPONSE => error
    raise Refused, "no response: #{error.message}"
  end

  # What to do with an event for the action that you serve: act on :decision, which is "accept", "verify" (ask for a second
  # factor) or "refuse", and log :reasons, what decided first: "rule:" and the name of the rule that blocked or challenged,
  # "level:" and the level, a problem, "not_scored", "not_identifiable", "not_known". :problem says why it is of another
  # action, nil where it is of this one.
  #
  # origin is nil for an app, tag nil for none; account_id, action and platform are compared where they are given. ip is the
  # address that is talking to you, to compare it, with same_network only its /24 or /48; proven asks for a proven visit;
  # allow_unknown accepts a visitor that is new, or the same by all that is known and not proven (confidence 85 to 89), as at
  # a sign-up. A first visit is never proven: it brings the key that later ones are compared with. The block stores a request
  # id in a column with a unique key, and says whether it was new: an event counts once.
  def check(event, allow_unknown: false, now: Time.now, **action)
    return concluded(["not_found"], nil, allow_unknown) unless event

    occurred_ms = form?(event, %w[request_id occurred_at]) ? time_ms(event["occurred_at"]) : nil
    raise Refused, "unexpected_response" if occurred_ms.nil?

    age_ms = (now.to_r * 1000).floor - occurred_ms
    is_fresh = age_ms > -CLOCK_SKEW_S * 1000 && age_ms < MAX_AGE_S * 1000
    problems = is_fresh ? differences(event, **action) : ["too_old"]
    problems = ["used_before"] if may_count?(problems) && !yield(event["request_id"])
    concluded(problems, event, allow_unknown)
  end

  # The first strong problem alone, else every weak one.
  def differences(seen, origin:, tag:, account_id: nil, action: nil, platform: nil, proven: false, **network)
    weak = distance(seen["ip_address"], **network)
    return ["other_origin"] if seen["origin"].to_s != origin.to_s # an empty one is none
    return ["other_tag"] if seen["tag"].to_s != tag.to_s
    return ["other_account"] if account_id && seen["account_id"] != account_id
    return ["other_action"] if action && seen["action"] != action
    return ["other_platform"] if platform && seen["platform"] != platform

    proven && seen["proven"] != true ? [*weak, "unproven"] : weak
  end

  # Whether what the checks read of an event or a verdict is there, and of its kind; so are more texts and integers.
  def form?(seen, texts, integers = [])
    return false unless seen.is_a?(Hash)

    rule = seen["decision"].nil? ? { "action" => "", "rule" => "" } : seen["decision"]
    seen.values_at("ip_address", "platform", *texts).all? { |one| one.is_a?(String) && one != "" } &&
      seen.values_at("visitor_confidence", *integers).all? { |one| whole?(one) } &&
      seen.values_at("origin", "tag", "account_id", "action", "suspect_level").reject(&:nil?).all?(String) &&
      [true, false].include?(seen["identifiable"]) &&
      rule.is_a?(Hash) && rule.values_at("action", "rule").all?(String) && !address(seen["ip_address"]).nil?
  end

  # A time of RFC 3339, in milliseconds since 1970; nil for any other text.
  def time_ms(text)
    day = TIME.match(text)&.[](1)
    return nil if day.nil? || !Date.valid_date?(*day.split("-").map(&:to_i))

    (Time.iso8601(text).to_r * 1000).floor
  end

  # Whether an identification counts for its action, at once or after a second factor.
  def may_count?(problems)
    (problems - WEAK).empty?
  end

  # The stricter of what the problems and the level say and of what a rule decided.
  def concluded(problems, seen, allow_unknown)
    refusing, asking = may_count?(problems) ? against(problems, seen, allow_unknown) : [problems.first(1), []]
    decision = refusing.any? ? "refuse" : asking.any? ? "verify" : "accept"
    { problem: problems.first, decision: decision, reasons: refusing + asking }
  end

  def against(problems, seen, allow_unknown)
    refusing, asking = [], []
    rule, level = seen.values_at("decision", "suspect_level")
    unless rule.nil? || %w[allow review].include?(rule["action"]) # one of tomorrow is no reason to accept
      (rule["action"] == "block" ? refusing : asking) << "rule:#{rule["rule"]}"
    end
    asking << "not_scored" if level.nil?
    (level == "high" ? refusing : asking) << "level:#{level}" unless [nil, "low"].include?(level)
    asking.concat(problems)
    asking << "not_identifiable" unless seen["identifiable"]
    asking << "not_known" unless allow_unknown || seen["visitor_confidence"] >= 90
    [refusing, asking]
  end

  # What differs of the two addresses, where one is to be compared.
  def distance(seen, ip: nil, same_network: false)
    return [] unless ip

    one, other = address(seen), address(ip)
    raise ArgumentError, "no address" if other.nil?

    return one == other ? [] : ["other_address"] unless same_network

    bits = one.ipv4? ? 24 : 48
    one.family == other.family && one.mask(bits) == other.mask(bits) ? [] : ["other_network"]
  end

  # An address in one form, whatever the notation, nil for none; IPv4 inside IPv6 is IPv4, and a zone is of one machine.
  def address(text)
    plain = text.sub(/\A([^%]*:[^%]*)%[^%]+\z/m, '\1')
    return nil unless Resolv::IPv4::Regex.match?(plain) || (plain.include?(":") && /\A[0-9A-Fa-f:.]+\z/.match?(plain))

    found = IPAddr.new(plain)
    found.ipv4_mapped? ? found.native : found
  rescue IPAddr::Error
    nil
  end

  # The event of an authentic delivery, nil for any other: respond 401 then. body is the exact bytes that arrived, such as
  # request.body.read; timestamp and signature are the headers X-Svc-Timestamp and X-Svc-Signature; secrets has the
  # signing secret, two while you rotate.
  def webhook(body, timestamp, signature, secrets, now: Time.now)
    return nil unless /\A[0-9]{1,12}\z/.match?(timestamp.to_s) && (now.to_f - timestamp.to_i).abs <= 300

    parts = signature.to_s.split(",").map(&:strip)
    is_signed = secrets.map(&:strip).reject(&:empty?).any? do |secret|
      expected = "sha256=#{OpenSSL::HMAC.hexdigest("SHA256", secret, "#{timestamp}.".b + body.b)}"
      parts.any? { |part| OpenSSL.secure_compare(expected, part) }
    end
    event = is_signed ? json(body) : nil
    has_texts = event && event.values_at("id", "type").all? { |one| one.is_a?(String) && one != "" }
    event if has_texts && event["version"].is_a?(Numeric) && event["version"] == 1 && event["data"].is_a?(Hash)
  end

  # What to do with a signed verdict: as of check, and its claims as :verdict, nil where the signature does not hold. The
  # block gets the "jti".
  def check_verdict(token, keys, organization_id:, environment:, allow_unknown: false, now: Time.now, **action)
    claims = verified(token, keys)
    unless claims && claims["aud"] == organization_id && claims["environment"] == environment
      return { **concluded(["invalid"], nil, allow_unknown), verdict: nil }
    end

    is_alive = now.to_r > claims["iat"] - CLOCK_SKEW_S && now.to_r < claims["exp"]
    problems = is_alive ? differences(claims, **action) : ["too_old"]
    problems = ["used_before"] if may_count?(problems) && !yield(claims["jti"])
    { **concluded(problems, claims, allow_unknown), verdict: claims }
  end

  def verified(token, keys)
    return nil unless token.is_a?(String) && /\A[\w-]+\.[\w-]+\.[\w-]+\z/.match?(token)

    header, claims, signature = token.split(".")
    said = json(decoded(header).to_s)
    return nil unless said && said["alg"] == "EdDSA" && said["typ"] == "svc-verdict+jwt" && !said.key?("crit")

    ours = keys.select { |one| one["kty"] == "OKP" && one["crv"] == "Ed25519" && decoded(one["x"])&.bytesize == 32 }
    key = ours.reverse.find { |one| one["kid"] == said["kid"] }
    signed = decoded(signature)
    return nil unless key && signed

    public_key = OpenSSL::PKey.read(KEY_PREFIX + decoded(key["x"]))
    return nil unless public_key.verify(nil, signed, "#{header}.#{claims}")

    found = json(decoded(claims).to_s)
    found if form?(found, %w[aud jti environment], %w[iat exp])
  rescue OpenSSL::PKey::PKeyError
    nil
  end

  # Bytes from base64url in its one spelling; nil for another text of the same bytes: two texts of one verdict would pass for
  # two.
  def decoded(text)
    content = Base64.urlsafe_decode64(text)
    content if Base64.urlsafe_encode64(content, padding: false) == text
  rescue ArgumentError
    nil
  end
end
