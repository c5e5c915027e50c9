# frozen_string_literal: true

# A recipe to copy: reads and checks an identification, and verifies webhooks and signed verdicts. Ruby 3.0 or later, with
# nothing but its standard library.

require "base64"
require "ipaddr"
require "json"
require "net/http"
require "openssl"
require "time"

module Svc
  MAX_AGE_S = 300
  CLOCK_SKEW_S = 30
  # Problems that honest visitors have, too: they ask for a second factor. With any other one, the event is refused.
  WEAK = %w[other_address other_network unproven].freeze
  REQUEST_ID = /\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/
  # What stands before the 32 bytes of an Ed25519 key (RFC 8410).
  KEY_PREFIX = ["302a300506032b6570032100"].pack("H*").freeze

  class Refused < StandardError; end

  module_function

  # The event of a request id that the visitor's client handed over, which may be anything; nil where there is none. Raises
  # Refused, or what Net::HTTP raises: decide beforehand what goes on then.
  def event(base_url, secret_key, request_id)
    return nil unless request_id.is_a?(String) && REQUEST_ID.match?(request_id)

    response = get("#{base_url}/api/v1/events/#{request_id}", "x-api-key" => secret_key.strip)
    return nil if response.code == "404"
    raise Refused, "status #{response.code}" unless response.code == "200"

    JSON.parse(response.body)
  end

  # The published keys of an organization. Keep them for an hour, and ask again for an unknown kid once a minute at most.
  def verdict_keys(base_url, organization_id)
    response = get("#{base_url}/api/v1/organizations/#{URI.encode_www_form_component(organization_id)}/verdict-keys")
    raise Refused, "status #{response.code}" unless response.code == "200"

    JSON.parse(response.body).fetch("keys")
  end

  def get(url, headers = {})
    address = URI(url)
    options = { use_ssl: address.scheme == "https", open_timeout: 5, read_timeout: 5 }
    Net::HTTP.start(address.host, address.port, **options) { |http| http.get(address.request_uri, headers) }
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

    raise Refused, "unexpected_response" unless form?(event, %w[occurred_at]) && time(event["occurred_at"])

    age = now - time(event["occurred_at"])
    problems = age > -CLOCK_SKEW_S && age < MAX_AGE_S ? differences(event, **action) : ["too_old"]
    problems = ["used_before"] if may_count?(problems) && !yield(event["request_id"])
    concluded(problems, event, allow_unknown)
  end

  # The first strong problem alone, else every weak one.
  def differences(seen, origin:, tag:, account_id: nil, action: nil, platform: nil, proven: false, **network)
    weak = distance(seen["ip_address"], **network)
    return ["other_origin"] if seen["origin"] != origin
    return ["other_tag"] if seen["tag"] != tag
    return ["other_account"] if account_id && seen["account_id"] != account_id
    return ["other_action"] if action && seen["action"] != action
    return ["other_platform"] if platform && seen["platform"] != platform

    proven && seen["proven"] != true ? [*weak, "unproven"] : weak
  end

  # Whether what the checks read of an event or a verdict is there, and of its kind; so are more texts and integers.
  def form?(seen, texts, integers = [])
    return false unless seen.is_a?(Hash)

    rule = seen["decision"] || { "action" => "", "rule" => "" }
    seen.values_at("ip_address", "platform", *texts).all?(String) &&
      seen.values_at("visitor_confidence", *integers).all?(Integer) &&
      seen.values_at("origin", "tag", "account_id", "action", "suspect_level").compact.all?(String) &&
      [true, false].include?(seen["identifiable"]) &&
      rule.is_a?(Hash) && rule.values_at("action", "rule").all?(String) && !address(seen["ip_address"]).nil?
  rescue IPAddr::Error
    false
  end

  def time(text)
    Time.iso8601(text)
  rescue ArgumentError
    nil
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
    return one == other ? [] : ["other_address"] unless same_network

    one.family == other.family && one.mask(one.ipv4? ? 24 : 48).include?(other) ? [] : ["other_network"]
  end

  # An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4, and a zone is of one machine.
  def address(text)
    found = IPAddr.new(text.sub(/%.*/, ""))
    found.ipv4_mapped? ? found.native : found
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
    text = body.dup.force_encoding(Encoding::UTF_8)
    event = JSON.parse(text) if is_signed && text.valid_encoding?
    event if event.is_a?(Hash) && event["version"] == 1
  rescue JSON::ParserError
    nil
  end

  # What to do with a signed verdict: as of check, and its claims as :verdict, nil where the signature does not hold. The
  # block gets the "jti".
  def check_verdict(token, keys, organization_id:, environment:, allow_unknown: false, now: Time.now, **action)
    claims = verified(token, keys)
    unless claims && claims["aud"] == organization_id && claims["environment"] == environment
      return { **concluded(["invalid"], nil, allow_unknown), verdict: nil }
    end

    is_alive = now.to_f > claims["iat"] - CLOCK_SKEW_S && now.to_f < claims["exp"]
    problems = is_alive ? differences(claims, **action) : ["too_old"]
    problems = ["used_before"] if may_count?(problems) && !yield(claims["jti"])
    { **concluded(problems, claims, allow_unknown), verdict: claims }
  end

  def verified(token, keys)
    return nil unless token.is_a?(String) && /\A[\w-]+\.[\w-]+\.[\w-]+\z/.match?(token)

    header, claims, signature = token.split(".")
    said = JSON.parse(decoded(header).to_s)
    return nil unless said.is_a?(Hash) && said["alg"] == "EdDSA" && said["typ"] == "svc-verdict+jwt"

    key = keys.find { |one| one["kty"] == "OKP" && one["crv"] == "Ed25519" && one["kid"] == said["kid"] }
    signed = decoded(signature)
    return nil unless key && signed

    public_key = OpenSSL::PKey.read(KEY_PREFIX + decoded(key["x"]))
    return nil unless public_key.verify(nil, signed, "#{header}.#{claims}")

    found = JSON.parse(decoded(claims))
    found if form?(found, %w[aud jti environment], %w[iat exp])
  rescue JSON::ParserError, OpenSSL::PKey::PKeyError
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
