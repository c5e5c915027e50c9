<?php
// A recipe to copy: reads and checks an identification, and verifies webhooks and signed verdicts. PHP 8.0 or later with
// the extensions curl, json and sodium.

declare(strict_types=1);

const SVC_MAX_AGE_S = 300;
const SVC_CLOCK_SKEW_S = 30;
const SVC_MAX_BYTES = 16 * 2 ** 20;
const SVC_DEEPEST = 100;
/** Problems that honest visitors have, too: they ask for a second factor. With any other one, the event is refused. */
const SVC_WEAK = ['other_address', 'other_network', 'unproven'];

/**
 * The event of a request id that the visitor's client handed over, which may be anything; null where there is none.
 * Throws RuntimeException where the service refuses or has not responded within a time limit: decide beforehand what goes
 * on then.
 */
function svc_event(string $base_url, string $secret_key, mixed $request_id, float $timeout_s = 5): ?array
{
    $form = '/\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z/';
    if (!is_string($request_id) || !preg_match($form, $request_id)) {
        return null;
    }
    return svc_event_of($request_id, ...svc_get("$base_url/api/v1/events/$request_id", $timeout_s, $secret_key));
}

/** The event in a response. */
function svc_event_of(string $request_id, int $status, string $text): ?array
{
    $body = svc_json($text);
    $code = $status === 200 ? null : svc_code($body);
    if (in_array($code, ['event_not_found', 'invalid_request_id'], true)) {
        return null;
    }
    if ($status !== 200 || ($body['request_id'] ?? null) !== $request_id) {
        throw new RuntimeException("svc: status $status " . ($code ?? 'unexpected_response'));
    }
    return $body;
}

/** The published keys of an organization. Keep them for an hour, and ask again for an unknown `kid` once a minute at most. */
function svc_verdict_keys(string $base_url, string $organization_id, float $timeout_s = 5): array
{
    $url = "$base_url/api/v1/organizations/" . rawurlencode($organization_id) . '/verdict-keys';
    return svc_keys_of(...svc_get($url, $timeout_s));
}

/** The keys in a response. */
function svc_keys_of(int $status, string $text): array
{
    $body = svc_json($text);
    $keys = $status === 200 ? ($body['keys'] ?? null) : null;
    $is_key = fn (mixed $key): bool => is_array($key) && svc_are_texts($key, ['kty', 'crv', 'kid', 'x']);
    if (!is_array($keys) || !svc_is_list($keys) || array_filter($keys, $is_key) !== $keys) {
        throw new RuntimeException("svc: status $status " . ($status === 200 ? 'unexpected_response' : svc_code($body)));
    }
    return $keys;
}

/** The code of an error; `unexpected_response` for what has not the form of one. */
function svc_code(?array $body): string
{
    $error = $body['error'] ?? null;
    $details = is_array($error) ? $error['details'] ?? [] : null;
    $is_detail = fn (mixed $one): bool => is_array($one) && ($one === [] || !svc_is_list($one))
        && svc_are_texts($one + ['field' => '', 'issue' => '', 'location' => ''], ['field', 'issue', 'location'], true);
    $is_error = is_array($details) && svc_is_list($details) && array_filter($details, $is_detail) === $details
        && svc_are_texts($error, ['code', 'message']) && $error['code'] !== '';
    return $is_error ? $error['code'] : 'unexpected_response';
}

function svc_are_texts(array $fields, array $names, bool $or_null = false): bool
{
    $is_text = fn (string $name): bool => is_string($fields[$name] ?? ($or_null ? '' : null));
    return array_filter($names, $is_text) === $names;
}

function svc_is_list(array $value): bool
{
    return $value === array_values($value);
}

/**
 * The object of a text of JSON in UTF-8, nested at most 100 levels deep; null for any other text. Of two fields of one name
 * the last one counts.
 */
function svc_json(string $text): ?array
{
    $value = json_decode($text, true, SVC_DEEPEST + 1);
    return is_array($value) && preg_match('/\A[ \t\r\n]*\{/', $text) ? $value : null;
}

/** Whether a value is a whole number, in any notation, that every reader of JSON has exactly (RFC 8259, section 6). */
function svc_is_whole(mixed $value): bool
{
    return (is_int($value) || (is_float($value) && floor($value) === $value)) && abs($value) < 2 ** 53;
}

/** Status and text of a response, which must be here within the time limit. */
function svc_get(string $url, float $timeout_s, ?string $key = null): array
{
    $text = '';
    $request = curl_init($url);
    curl_setopt_array($request, [
        CURLOPT_HTTPHEADER => $key === null ? [] : ['x-api-key: ' . trim($key)],
        CURLOPT_TIMEOUT_MS => (int) ($timeout_s * 1000),
        CURLOPT_NOSIGNAL => true,
        CURLOPT_WRITEFUNCTION => function ($_, string $chunk) use (&$text): int {
            $text .= $chunk;
            return strlen($text) > SVC_MAX_BYTES ? 0 : strlen($chunk); // 0 ends it
        },
    ]);
    $is_whole = curl_exec($request);
    if (!$is_whole && strlen($text) <= SVC_MAX_BYTES) {
        throw new RuntimeException('svc: no response: ' . curl_error($request));
    }
    return [curl_getinfo($request, CURLINFO_RESPONSE_CODE), $is_whole ? $text : ''];
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
    $occurred_ms = svc_has_form($event, ['request_id', 'occurred_at']) ? svc_time_ms($event['occurred_at']) : null;
    if ($occurred_ms === null) {
        throw new RuntimeException('svc: unexpected_response');
    }
    $age_ms = (int) round(($now ?? microtime(true)) * 1000) - $occurred_ms;
    $is_fresh = $age_ms > -SVC_CLOCK_SKEW_S * 1000 && $age_ms < SVC_MAX_AGE_S * 1000;
    $problems = $is_fresh ? svc_differences($event, $action) : ['too_old'];
    if (svc_may_count($problems) && !$is_first_use($event['request_id'])) {
        $problems = ['used_before'];
    }
    return svc_concluded($problems, $event, $action);
}

/** A time of RFC 3339, in milliseconds since 1970; null for any other text. */
function svc_time_ms(string $text): ?int
{
    $form = '/\A([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{1,9})?'
        . '(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])\z/';
    if (!preg_match($form, $text, $part) || !checkdate((int) $part[2], (int) $part[3], (int) $part[1])) {
        return null;
    }
    $time = new DateTimeImmutable(preg_replace('/(\.[0-9]{6})[0-9]+/', '$1', $text));
    return $time->getTimestamp() * 1000 + (int) $time->format('v');
}

/** The first strong problem alone, else every weak one. */
function svc_differences(array $seen, array $action): array
{
    $expected = fn (string $name): bool => !isset($action[$name]) || ($seen[$name] ?? null) === $action[$name];
    $distance = svc_distance($seen['ip_address'], $action);
    $strong = match (true) {
        ($seen['origin'] ?? '') !== ($action['origin'] ?? '') => 'other_origin', // an empty one is none
        ($seen['tag'] ?? '') !== ($action['tag'] ?? '') => 'other_tag',
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
    $texts = ['ip_address', 'platform', ...$texts];
    $integers = ['visitor_confidence', ...$integers];
    $rule = $seen['decision'] ?? ['action' => '', 'rule' => ''];
    return svc_are_texts($seen, $texts)
        && array_filter($texts, fn (string $name): bool => $seen[$name] !== '') === $texts
        && array_filter($integers, fn (string $name): bool => svc_is_whole($seen[$name] ?? null)) === $integers
        && svc_are_texts($seen, ['origin', 'tag', 'account_id', 'action', 'suspect_level'], true)
        && is_bool($seen['identifiable'] ?? null)
        && is_array($rule) && svc_are_texts($rule, ['action', 'rule'])
        && svc_address($seen['ip_address']) !== null;
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
    if ($other === null) {
        throw new InvalidArgumentException('svc: no address');
    }
    if (!($action['same_network'] ?? false)) {
        return $one === $other ? [] : ['other_address'];
    }
    $bytes = strlen($one) === 4 ? 3 : 6;
    $is_same = strlen($one) === strlen($other) && substr($one, 0, $bytes) === substr($other, 0, $bytes);
    return $is_same ? [] : ['other_network'];
}

/** The bytes of an address, whatever the notation, null for none; IPv4 inside IPv6 is IPv4, a zone is of one machine. */
function svc_address(string $text): ?string
{
    $plain = preg_replace('/\A([^%]*:[^%]*)%[^%]+\z/s', '$1', $text);
    $is_address = filter_var($plain, FILTER_VALIDATE_IP) !== false && !preg_match('/[^0-9A-Fa-f:.]/', $plain);
    $bytes = $is_address ? inet_pton($plain) : false;
    if ($bytes === false) {
        return null;
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
                $event = svc_json($body) ?? [];
                $has_texts = svc_are_texts($event, ['id', 'type']) && $event['id'] !== '' && $event['type'] !== '';
                $data = $event['data'] ?? null;
                $is_data = is_array($data) && ($data === [] || !svc_is_list($data));
                $is_event = $has_texts && $is_data && svc_is_whole($event['version'] ?? null);
                return $is_event && (int) $event['version'] === 1 ? $event : null;
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
    $now_ms = (int) round(($now ?? microtime(true)) * 1000);
    $is_alive = $now_ms > ($claims['iat'] - SVC_CLOCK_SKEW_S) * 1000 && $now_ms < $claims['exp'] * 1000;
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
    $said = svc_json(svc_decoded($header)) ?? [];
    $is_verdict = ($said['alg'] ?? '') === 'EdDSA' && ($said['typ'] ?? '') === 'svc-verdict+jwt';
    if (!$is_verdict || array_key_exists('crit', $said)) {
        return null;
    }
    foreach (array_reverse($keys) as $key) {
        $public = svc_decoded($key['x']);
        $is_ours = $key['kty'] === 'OKP' && $key['crv'] === 'Ed25519' && strlen($public) === SODIUM_CRYPTO_SIGN_PUBLICKEYBYTES;
        if ($is_ours && $key['kid'] === ($said['kid'] ?? null)) {
            $signed = svc_decoded($signature);
            $is_signed = strlen($signed) === SODIUM_CRYPTO_SIGN_BYTES
                && sodium_crypto_sign_verify_detached($signed, "$header.$claims", $public);
            $found = $is_signed ? svc_json(svc_decoded($claims)) : null;
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
