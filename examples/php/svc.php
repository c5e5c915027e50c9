<?php
// A recipe to copy: reads and checks an identification, and verifies webhooks and signed verdicts. PHP 8.0 or later with
// the extensions json and sodium, which PHP's own builds have.

declare(strict_types=1);

const SVC_MAX_AGE_S = 300;
const SVC_CLOCK_SKEW_S = 30;
/** Problems that honest visitors have, too: they ask for a second factor. With any other one, the event is refused. */
const SVC_WEAK = ['other_address', 'other_network', 'unproven'];

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
 * What to do with an event for the action that you serve: act on `decision`, which is `accept`, `verify` (ask for a second
 * factor) or `refuse`, and log `reasons`, what decided first: `rule:` and the name of the rule that blocked or challenged,
 * `level:` and the level, a problem, `not_scored`, `not_identifiable`, `not_known`. `problem` says why it is of another
 * action, null where it is of this one.
 *
 * $action has `origin` (null for an app) and `tag` (null for none), and may have `account_id`, `action` and `platform`; `ip`
 * to compare the address that is talking to you, with `same_network` only its /24 or /48; `proven` to ask for a proven visit;
 * `allow_unknown` to accept a visitor that is new, or the same by all that is known and not proven (confidence 85 to 89), as at a
 * sign-up. A first visit is never proven: it brings the key that later ones are compared with. $is_first_use stores a request
 * id in a column with a unique key, and says whether it was new: an event counts once.
 */
function svc_check(?array $event, array $action, callable $is_first_use, ?float $now = null): array
{
    if ($event === null) {
        return svc_concluded(['not_found'], null, $action);
    }
    if (!svc_has_form($event, ['occurred_at']) || strtotime($event['occurred_at']) === false) {
        throw new RuntimeException('svc: unexpected_response');
    }
    $occurred = new DateTimeImmutable($event['occurred_at']);
    $age = ($now ?? microtime(true)) - (float) $occurred->format('U.u');
    $is_fresh = $age > -SVC_CLOCK_SKEW_S && $age < SVC_MAX_AGE_S;
    $problems = $is_fresh ? svc_differences($event, $action) : ['too_old'];
    if (svc_may_count($problems) && !$is_first_use($event['request_id'])) {
        $problems = ['used_before'];
    }
    return svc_concluded($problems, $event, $action);
}

/** The first strong problem alone, else every weak one. */
function svc_differences(array $seen, array $action): array
{
    $expected = fn (string $name): bool => !isset($action[$name]) || ($seen[$name] ?? null) === $action[$name];
    $distance = svc_distance($seen['ip_address'], $action);
    $strong = match (true) {
        ($seen['origin'] ?? null) !== $action['origin'] => 'other_origin',
        ($seen['tag'] ?? null) !== $action['tag'] => 'other_tag',
        !$expected('account_id') => 'other_account',
        !$expected('action') => 'other_action',
        !$expected('platform') => 'other_platform',
        default => null,
    };
    $is_unproven = ($action['proven'] ?? false) && ($seen['proven'] ?? false) !== true;
    return $strong !== null ? [$strong] : [...$distance, ...($is_unproven ? ['unproven'] : [])];
}

/** Whether what the checks read of an event or a verdict is there, and of its kind; so are more texts and integers. */
function svc_has_form(array $seen, array $texts, array $integers = []): bool
{
    $optional = ['origin', 'tag', 'account_id', 'action', 'suspect_level'];
    $rule = $seen['decision'] ?? ['action' => '', 'rule' => ''];
    $is = fn (string $kind, mixed ...$values): bool => array_unique(array_map('gettype', $values)) === [$kind];
    return $is('string', ...array_map(fn (string $name) => $seen[$name] ?? null, ['ip_address', 'platform', ...$texts]))
        && $is('integer', ...array_map(fn (string $name) => $seen[$name] ?? null, ['visitor_confidence', ...$integers]))
        && $is('string', ...array_map(fn (string $name) => $seen[$name] ?? '', $optional))
        && is_bool($seen['identifiable'] ?? null)
        && is_array($rule) && $is('string', $rule['action'] ?? null, $rule['rule'] ?? null)
        && @inet_pton(preg_replace('/%.*/', '', $seen['ip_address'])) !== false;
}

/** Whether an identification counts for its action, at once or after a second factor. */
function svc_may_count(array $problems): bool
{
    return array_diff($problems, SVC_WEAK) === [];
}

/** The stricter of what the problems and the level say and of what a rule decided. */
function svc_concluded(array $problems, ?array $seen, array $action): array
{
    $refusing = $asking = [];
    if ($seen === null || !svc_may_count($problems)) {
        $refusing = [$problems[0]];
    } else {
        $rule = $seen['decision'] ?? null;
        $level = $seen['suspect_level'] ?? null; // absent: the report could not be scored
        if ($rule !== null && !in_array($rule['action'], ['allow', 'review'], true)) {
            $rule['action'] === 'block' ? $refusing[] = "rule:{$rule['rule']}" : $asking[] = "rule:{$rule['rule']}";
        }
        match ($level) {
            'low' => null,
            'high' => $refusing[] = 'level:high',
            default => $asking[] = $level === null ? 'not_scored' : "level:$level",
        };
        array_push($asking, ...$problems);
        if (!$seen['identifiable']) {
            $asking[] = 'not_identifiable';
        }
        if (!($action['allow_unknown'] ?? false) && $seen['visitor_confidence'] < 90) {
            $asking[] = 'not_known';
        }
    }
    $decision = $refusing ? 'refuse' : ($asking ? 'verify' : 'accept');
    return ['problem' => $problems[0] ?? null, 'decision' => $decision, 'reasons' => [...$refusing, ...$asking]];
}

/** What differs of the two addresses, where one is to be compared. */
function svc_distance(string $seen, array $action): array
{
    if (!isset($action['ip'])) {
        return [];
    }
    [$one, $other] = [svc_address($seen), svc_address($action['ip'])];
    if (!($action['same_network'] ?? false)) {
        return $one === $other ? [] : ['other_address'];
    }
    $bytes = strlen($one) === 4 ? 3 : 6;
    $is_same = strlen($one) === strlen($other) && substr($one, 0, $bytes) === substr($other, 0, $bytes);
    return $is_same ? [] : ['other_network'];
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
 * What to do with a signed verdict: as of svc_check, and its claims as `verdict`, null where the signature does not hold.
 * $expected is an action as of svc_check with `organization_id` and `environment`. $is_first_use gets the `jti`.
 */
function svc_check_verdict(mixed $token, array $keys, array $expected, callable $is_first_use, ?float $now = null): array
{
    $claims = svc_verified($token, $keys);
    $aud = $claims['aud'] ?? null;
    if ($aud !== $expected['organization_id'] || $claims['environment'] !== $expected['environment']) {
        return svc_concluded(['invalid'], null, $expected) + ['verdict' => null];
    }
    $now ??= microtime(true);
    $is_alive = $now > $claims['iat'] - SVC_CLOCK_SKEW_S && $now < $claims['exp'];
    $problems = $is_alive ? svc_differences($claims, $expected) : ['too_old'];
    if (svc_may_count($problems) && !$is_first_use($claims['jti'])) {
        $problems = ['used_before'];
    }
    return svc_concluded($problems, $claims, $expected) + ['verdict' => $claims];
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
            $found = $is_signed ? json_decode(svc_decoded($claims), true) : null;
            $is_verdict = is_array($found) && svc_has_form($found, ['aud', 'jti', 'environment'], ['iat', 'exp']);
            return $is_verdict ? $found : null;
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
