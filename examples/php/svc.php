<?php
// A recipe to copy: reads and checks an identification, and verifies webhooks and signed verdicts. PHP 8.0 or later with
// the extensions json and sodium, which PHP's own builds have.

declare(strict_types=1);

const SVC_MAX_AGE_S = 300;
const SVC_CLOCK_SKEW_S = 30;

/**
 * The event of a request id that the visitor's client handed over, which may be anything; null where there is none.
 * Throws RuntimeException where the service refuses or does not respond: decide beforehand what goes on then.
 */
function svc_event(string $base_url, string $secret_key, mixed $request_id): ?array
{
    $form = '/\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/';
    if (!is_string($request_id) || !preg_match($form, $request_id)) {
        return null;
    }
    [$status, $body] = svc_get("$base_url/api/v1/events/$request_id", $secret_key);
    if ($status === 404) {
        return null;
    }
    if ($status !== 200 || !is_array($body)) {
        throw new RuntimeException("svc: status $status " . ($body['error']['code'] ?? 'unexpected_response'));
    }
    return $body;
}

/** The published keys of an organization. Keep them for an hour, and ask again for an unknown `kid` once a minute at most. */
function svc_verdict_keys(string $base_url, string $organization_id): array
{
    [$status, $body] = svc_get("$base_url/api/v1/organizations/" . rawurlencode($organization_id) . '/verdict-keys');
    return $status === 200 ? $body['keys'] : throw new RuntimeException("svc: status $status");
}

/** Status and decoded body. */
function svc_get(string $url, ?string $key = null): array
{
    $headers = $key === null ? [] : ['x-api-key: ' . trim($key)];
    $options = ['header' => $headers, 'timeout' => 5, 'ignore_errors' => true, 'follow_location' => 0];
    $text = @file_get_contents($url, false, stream_context_create(['http' => $options]));
    if ($text === false || !preg_match('#^HTTP/\S+ (\d+)#', $http_response_header[0] ?? '', $found)) {
        throw new RuntimeException('svc: no response');
    }
    return [(int) $found[1], json_decode($text, true)];
}

/**
 * Why an event does not belong to the action that you serve; null where it does. Then store its request id in a column with
 * a unique key, and refuse one that is there: an event counts once.
 *
 * $action has `origin` (null for an app), `ip` (null not to compare it) and `tag` (null for none), and may have
 * `account_id`, `action`, `platform` and `proven`.
 */
function svc_problem(array $event, array $action, ?float $now = null): ?string
{
    $occurred = new DateTimeImmutable($event['occurred_at']);
    $age = ($now ?? microtime(true)) - (float) $occurred->format('U.u');
    if ($age <= -SVC_CLOCK_SKEW_S || $age >= SVC_MAX_AGE_S) {
        return 'too_old';
    }
    return svc_difference($event, $action);
}

function svc_difference(array $seen, array $action): ?string
{
    $expected = fn (string $name): bool => !isset($action[$name]) || ($seen[$name] ?? null) === $action[$name];
    return match (true) {
        ($seen['origin'] ?? null) !== $action['origin'] => 'other_origin',
        $action['ip'] !== null && svc_address($seen['ip_address']) !== svc_address($action['ip']) => 'other_address',
        ($seen['tag'] ?? null) !== $action['tag'] => 'other_tag',
        !$expected('account_id') => 'other_account',
        !$expected('action') => 'other_action',
        !$expected('platform') => 'other_platform',
        ($action['proven'] ?? false) && ($seen['proven'] ?? false) !== true => 'unproven',
        default => null,
    };
}

/** An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4. */
function svc_address(string $text): string
{
    $bytes = @inet_pton(preg_replace('/%.*/', '', $text));
    if ($bytes === false) {
        throw new InvalidArgumentException('svc: no address');
    }
    $mapped = str_repeat("\0", 10) . "\xff\xff";
    return strlen($bytes) === 16 && str_starts_with($bytes, $mapped) ? substr($bytes, 12) : $bytes;
}

/** For a log-in, with an event or a verdict that has no problem: `accept`, `verify` (a second factor) or `refuse`. */
function svc_decide(array $seen): string
{
    $level = $seen['suspect_level'] ?? 'medium'; // absent: the report could not be scored
    $is_known = $seen['identifiable'] && $seen['visitor_confidence'] >= 90;
    return $level === 'high' ? 'refuse' : ($level === 'low' && $is_known ? 'accept' : 'verify');
}

/**
 * The event of an authentic delivery, null for any other: respond 401 then. $body is file_get_contents('php://input');
 * $timestamp and $signature are $_SERVER['HTTP_X_SVC_TIMESTAMP'] and $_SERVER['HTTP_X_SVC_SIGNATURE'], '' where absent;
 * $secrets has the signing secret, two while you rotate.
 */
function svc_webhook(string $body, string $timestamp, string $signature, array $secrets, ?int $now = null): ?array
{
    if (!preg_match('/\A[0-9]{1,12}\z/', $timestamp) || abs(($now ?? time()) - (int) $timestamp) > 300) {
        return null;
    }
    foreach (array_filter(array_map('trim', $secrets)) as $secret) {
        $expected = 'sha256=' . hash_hmac('sha256', "$timestamp.$body", $secret);
        foreach (explode(',', $signature) as $part) {
            if (hash_equals($expected, trim($part))) {
                $event = json_decode($body, true);
                return is_array($event) && ($event['version'] ?? null) === 1 ? $event : null;
            }
        }
    }
    return null;
}

/**
 * A signed verdict: [problem, claims], where the problem is null for one that belongs to the action. $expected is an action
 * as of svc_problem with `organization_id` and `environment`. Accept each `jti` once.
 */
function svc_verdict(mixed $token, array $keys, array $expected, ?float $now = null): array
{
    $claims = svc_verified($token, $keys);
    $aud = $claims['aud'] ?? null;
    if ($aud !== $expected['organization_id'] || $claims['environment'] !== $expected['environment']) {
        return ['invalid', null];
    }
    $now ??= microtime(true);
    if ($now <= $claims['iat'] - SVC_CLOCK_SKEW_S || $now >= $claims['exp']) {
        return ['too_old', $claims];
    }
    return [svc_difference($claims, $expected), $claims];
}

function svc_verified(mixed $token, array $keys): ?array
{
    if (!is_string($token) || !preg_match('/\A[\w-]+\.[\w-]+\.[\w-]+\z/', $token)) {
        return null;
    }
    [$header, $claims, $signature] = explode('.', $token);
    $said = json_decode(svc_decoded($header), true);
    if (!is_array($said) || ($said['alg'] ?? '') !== 'EdDSA' || ($said['typ'] ?? '') !== 'svc-verdict+jwt') {
        return null;
    }
    foreach ($keys as $key) {
        if ($key['kty'] === 'OKP' && $key['crv'] === 'Ed25519' && $key['kid'] === ($said['kid'] ?? null)) {
            [$public, $signed] = [svc_decoded($key['x']), svc_decoded($signature)];
            $is_signed = strlen($public) === SODIUM_CRYPTO_SIGN_PUBLICKEYBYTES && strlen($signed) === SODIUM_CRYPTO_SIGN_BYTES
                && sodium_crypto_sign_verify_detached($signed, "$header.$claims", $public);
            return $is_signed ? json_decode(svc_decoded($claims), true) : null;
        }
    }
    return null;
}

/** Bytes from base64url in its one spelling, '' for another text of the same bytes: two texts of one verdict would pass. */
function svc_decoded(string $text): string
{
    $content = (string) base64_decode(strtr($text, '-_', '+/'), true);
    return rtrim(strtr(base64_encode($content), '+/', '-_'), '=') === $text ? $content : '';
}
