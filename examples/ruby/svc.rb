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

  # Why an event does not belong to the action that you serve; nil where it does. Then store its request id in a column
  # with a unique key, and refuse one that is there: an event counts once.
  #
  # origin is nil for an app, ip nil not to compare it, tag nil for none; account_id, action and platform nil not to compare
  # them.
  def problem_with(event, now: Time.now, **action)
    age = now - Time.iso8601(event["occurred_at"])
    return "too_old" unless age > -CLOCK_SKEW_S && age < MAX_AGE_S

    difference(event, **action)
  end

  def difference(seen, origin:, ip:, tag:, account_id: nil, action: nil, platform: nil, proven: false)
    return "other_origin" if seen["origin"] != origin
    return "other_address" if ip && address(seen["ip_address"]) != address(ip)
    return "other_tag" if seen["tag"] != tag
    return "other_account" if account_id && seen["account_id"] != account_id
    return "other_action" if action && seen["action"] != action
    return "other_platform" if platform && seen["platform"] != platform

    "unproven" if proven && seen["proven"] != true
  end

  # An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4.
  def address(text)
    IPAddr.new(text).native
  end

  # For a log-in, with an event or a verdict that has no problem: "accept", "verify" (a second factor) or "refuse".
  def decide(seen)
    level = seen["suspect_level"] # nil: the report could not be scored
    return "refuse" if level == "high"

    level == "low" && seen["identifiable"] && seen["visitor_confidence"] >= 90 ? "accept" : "verify"
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

  # A signed verdict: [problem, claims], where the problem is nil for one that belongs to the action, which is as of
  # problem_with. Accept each "jti" once.
  def verdict(token, keys, organization_id:, environment:, now: Time.now, **action)
    claims = verified(token, keys)
    return ["invalid", nil] unless claims && claims["aud"] == organization_id && claims["environment"] == environment
    return ["too_old", claims] unless now.to_f > claims["iat"] - CLOCK_SKEW_S && now.to_f < claims["exp"]

    [difference(claims, **action), claims]
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
    JSON.parse(decoded(claims)) if public_key.verify(nil, signed, "#{header}.#{claims}")
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
