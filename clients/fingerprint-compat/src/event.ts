/** From an event of the service to one of the server API v4. What the service does not know is left out. */

type Level = "low" | "medium" | "high" | (string & {});

/** What is read of an event, as `GET /api/v1/events/{request_id}` returns it. */
export interface SvcEvent {
  request_id: string;
  visitor_id: string;
  visitor_is_new: boolean;
  identifiable: boolean;
  visitor_confidence: number;
  state: "enriched" | "unavailable" | (string & {});
  occurred_at: string;
  platform: string;
  sdk_platform: string;
  sdk_version: string;
  ip_address: string;
  suspect_score: number | null;
  decision?: { action: string; rule_id: string };
  origin?: string;
  tag?: string;
  account_id?: string;
  label?: string;
  country_code?: string;
  country_name?: string;
  asn?: string;
  asn_name?: string;
  anonymity_network?: string;
  agent?: string;
  agent_version?: string;
  os?: string;
  device_kind?: string;
  visitor_kind?: string;
  signals?: ReadonlyArray<{ signal: string; confidence: Level }>;
  velocity?: SvcVelocity;
}

interface SvcVelocity {
  visitor: { events: Counts; accounts: Counts; addresses: Counts; countries: Counts };
  address: { events: Counts };
  account?: { addresses: Counts; visitors: Counts };
}

/** By window: `1h`, `24h`, `30d`. */
type Counts = Record<string, number>;

/** `5_minutes` is required by their schema, and there is none. */
export interface VelocityData {
  "1_hour": number;
  "24_hours": number;
}

export interface IpInfo {
  address: string;
  geolocation?: { country_code: string; country_name?: string };
  asn?: string;
  asn_name?: string;
  datacenter_result?: boolean;
}

/** An event of the server API v4: its fields that have something of the service to say. Times in milliseconds. */
export interface FingerprintEvent {
  event_id: string;
  timestamp: number;
  linked_id?: string;
  tags?: Record<string, unknown>;
  suspect?: boolean;
  sdk: { platform: "js" | "android" | "ios" | "unknown"; version: string };
  identification?: {
    visitor_id: string;
    visitor_found: boolean;
    confidence: { score: number; comment?: string };
    first_seen_at?: number;
  };
  url?: string;
  ip_address: string;
  ip_info?: { v4?: IpInfo; v6?: IpInfo };
  os?: string;
  device?: string;
  browser_details?: {
    browser_name: string;
    browser_major_version: string;
    browser_full_version: string;
    os: string;
    os_version: string;
    device: string;
  };
  suspect_score?: number;
  rule_action?: { type: "allow" | "block"; ruleset_id: string; rule_id: string };
  velocity?: Record<string, VelocityData>;
  replayed?: boolean;
  bot?: "bad" | "good" | "not_detected";
  vpn?: boolean;
  vpn_confidence?: "low" | "medium" | "high";
  vpn_methods?: Record<string, boolean>;
  proxy?: boolean;
  proxy_confidence?: "low" | "medium" | "high";
  proxy_details?: { proxy_type: "residential" | "unknown" };
  ip_blocklist?: { tor_node: boolean; attack_source: boolean; email_spam: boolean };
  tampering?: boolean;
  tampering_confidence?: "low" | "medium" | "high";
  tampering_details?: { anti_detect_browser: boolean };
  incognito?: boolean;
  privacy_settings?: boolean;
  developer_tools?: boolean;
  virtual_machine?: boolean;
  rare_device?: boolean;
  high_activity_device?: boolean;
  emulator?: boolean;
  cloned_app?: boolean;
  root_apps?: boolean;
  simulator?: boolean;
  jailbroken?: boolean;
  frida?: boolean;
  mitm_attack?: boolean;
  location_spoofing?: boolean;
}

/** What an event alone does not say. */
export interface Beside {
  /** When the visitor was seen first, as `GET /api/v1/visitors/{visitor_id}` has it. */
  firstSeenAt?: string | undefined;
  /** The ruleset that was asked for: adds `rule_action`, whatever its name, since there is one. */
  rulesetId?: string | undefined;
  /** Adds `velocity`, which lacks `5_minutes`. */
  velocity?: boolean | undefined;
}

const VPN_METHODS = {
  timezone_mismatch: "vpn_timezone_mismatch",
  public_vpn: "vpn_public",
  auxiliary_mobile: "vpn_auxiliary_mobile",
  os_mismatch: "vpn_os_mismatch",
  relay: "vpn_relay",
};
const VPN_CONFIDENCES = ["vpn_low", "vpn_medium", "vpn_high"];
const RESIDENTIAL = ["listed", "behavior", "low", "medium", "high"].map((name) => `residential_proxy_${name}`);
const TAMPERING = [
  "browser_tampering", "anti_detect_browser", "os_mismatch", "engine_mismatch", "gpu_mismatch", "app_tampering",
];
const BAD_BOT = ["automation", "headless", "bot_user_agent", "spoofed_crawler"];
const GOOD_BOT = ["search_crawler", "ai_agent"];

/** Field -> the signal that it is, by the platforms on which the service looks for it. */
const FLAGS: Record<string, Record<string, string>> = {
  web: {
    incognito: "incognito",
    privacy_settings: "privacy_settings",
    developer_tools: "developer_tools",
    virtual_machine: "virtual_machine",
    rare_device: "rare_device",
  },
  android: {
    developer_tools: "developer_tools",
    emulator: "emulator",
    cloned_app: "cloned_app",
    root_apps: "rooted",
    frida: "frida",
    mitm_attack: "mitm_attack",
    location_spoofing: "location_spoofing",
  },
  ios: {
    simulator: "simulator",
    jailbroken: "jailbroken",
    frida: "frida",
    mitm_attack: "mitm_attack",
    location_spoofing: "location_spoofing",
  },
};

/** The event as server API v4 has it. */
export function toFingerprintEvent(event: SvcEvent, beside: Beside = {}): FingerprintEvent {
  return {
    event_id: event.request_id,
    timestamp: Date.parse(event.occurred_at),
    ...(event.account_id === undefined ? {} : { linked_id: event.account_id }),
    ...(event.tag === undefined ? {} : { tags: tagsOf(event.tag) }),
    ...(event.label === undefined ? {} : { suspect: event.label === "fraud" }),
    sdk: { platform: sdkPlatform(event.sdk_platform), version: event.sdk_version },
    ...identificationOf(event, beside.firstSeenAt),
    ...deviceOf(event),
    ...networkOf(event),
    ...(event.suspect_score === null ? {} : { suspect_score: event.suspect_score }),
    ...ruleActionOf(event, beside.rulesetId),
    ...(beside.velocity && event.velocity ? { velocity: velocityOf(event.velocity) } : {}),
    ...signalsOf(event),
  };
}

/** An object that the agent sent as JSON, or the text as `{ tag }`. */
function tagsOf(tag: string): Record<string, unknown> {
  if (tag.startsWith("{")) {
    try {
      return JSON.parse(tag) as Record<string, unknown>;
    } catch {
      // a text that begins like one
    }
  }
  return { tag };
}

function sdkPlatform(name: string): FingerprintEvent["sdk"]["platform"] {
  if (name === "web") return "js";
  return name.endsWith("android") ? "android" : name.endsWith("ios") ? "ios" : "unknown";
}

function identificationOf(event: SvcEvent, firstSeenAt: string | undefined): Pick<FingerprintEvent, "identification"> {
  if (!event.identifiable) return {};
  return {
    identification: {
      visitor_id: event.visitor_id,
      visitor_found: !event.visitor_is_new,
      confidence: {
        score: event.visitor_confidence / 100,
        ...(event.visitor_is_new ? { comment: "A new visitor" } : {}),
      },
      ...(firstSeenAt === undefined ? {} : { first_seen_at: Date.parse(firstSeenAt) }),
    },
  };
}

function deviceOf({ platform, origin, agent, agent_version: version = "", os, device_kind: device }: SvcEvent): Partial<FingerprintEvent> {
  const details = {
    browser_name: agent ?? "",
    browser_major_version: version.split(".")[0]!,
    browser_full_version: version,
    os: os ?? "",
    os_version: "",
    device: device ?? "",
  };
  return {
    ...(origin === undefined ? {} : { url: origin }),
    ...(os === undefined ? {} : { os }),
    ...(device === undefined ? {} : { device }),
    ...(platform === "web" && agent !== undefined ? { browser_details: details } : {}),
  };
}

function networkOf(event: SvcEvent): Pick<FingerprintEvent, "ip_address" | "ip_info"> {
  const { ip_address: address, country_code: code, country_name: name, asn, asn_name, anonymity_network: network } = event;
  if (event.state !== "enriched") return { ip_address: address };
  const info: IpInfo = {
    address,
    ...(code === undefined ? {} : { geolocation: { country_code: code, ...(name === undefined ? {} : { country_name: name }) } }),
    ...(asn === undefined ? {} : { asn }),
    ...(asn_name === undefined ? {} : { asn_name }),
    // Behind Tor, a VPN or a proxy it is not known.
    ...(network === undefined || network === "hosting" ? { datacenter_result: network === "hosting" } : {}),
  };
  return { ip_address: address, ip_info: address.includes(":") ? { v6: info } : { v4: info } };
}

/** Of `review` and `challenge` there is no equivalent. */
function ruleActionOf({ decision }: SvcEvent, rulesetId: string | undefined): Pick<FingerprintEvent, "rule_action"> {
  if (rulesetId === undefined || (decision?.action !== "allow" && decision?.action !== "block")) return {};
  return { rule_action: { type: decision.action, ruleset_id: rulesetId, rule_id: decision.rule_id } };
}

function velocityOf({ visitor, address, account }: SvcVelocity): Record<string, VelocityData> {
  const counts = {
    distinct_ip: visitor.addresses,
    distinct_linked_id: visitor.accounts,
    distinct_country: visitor.countries,
    events: visitor.events,
    ip_events: address.events,
    ...(account ? { distinct_ip_by_linked_id: account.addresses, distinct_visitor_id_by_linked_id: account.visitors } : {}),
  };
  return Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, { "1_hour": count["1h"] ?? 0, "24_hours": count["24h"] ?? 0 }]),
  );
}

/** Nothing for an event that was stored without its signals, or could not be scored. */
function signalsOf(event: SvcEvent): Partial<FingerprintEvent> {
  const { signals, platform, anonymity_network: network, visitor_kind: kind } = event;
  if (signals === undefined || event.suspect_score === null) return {};
  const fired = new Map(signals.map(({ signal, confidence }) => [signal, confidence]));
  const any = (names: readonly string[]): boolean => names.some((name) => fired.has(name));
  const isTor = fired.has("tor") || network === "tor";
  const isVpn = any([...Object.values(VPN_METHODS), ...VPN_CONFIDENCES]) || network === "vpn";
  const isResidential = any(RESIDENTIAL);
  const isProxy = isResidential || fired.has("public_proxy") || network === "proxy";
  const isTampered = any(TAMPERING);
  const isWeb = platform === "web";
  const found: Partial<FingerprintEvent> = {
    replayed: fired.has("replayed"),
    high_activity_device: fired.has("high_activity"),
    tampering: isTampered,
    ...(isTampered ? confidence("tampering_confidence", highest(fired, TAMPERING)) : {}),
  };
  for (const [field, signal] of Object.entries(FLAGS[platform] ?? {})) Object.assign(found, { [field]: fired.has(signal) });
  if (isWeb) {
    const isBad = any(BAD_BOT) || kind === "automation";
    const isGood = any(GOOD_BOT) || kind === "search_crawler" || kind === "ai_bot";
    found.bot = isBad ? "bad" : isGood ? "good" : "not_detected";
    found.tampering_details = { anti_detect_browser: fired.has("anti_detect_browser") };
  }
  if (event.state === "enriched") {
    Object.assign(found, {
      // Beside Tor nobody looks for a VPN.
      ...(isTor ? {} : { vpn: isVpn }),
      ...(isVpn ? confidence("vpn_confidence", vpnConfidence(fired)) : {}),
      // Signals by confidence do not say by which method.
      ...(isTor || any(VPN_CONFIDENCES) ? {} : { vpn_methods: methodsOf(fired, isWeb) }),
      proxy: isProxy,
      ...(isProxy ? confidence("proxy_confidence", highest(fired, ["public_proxy", ...RESIDENTIAL])) : {}),
      ...(isProxy ? { proxy_details: { proxy_type: isResidential ? "residential" : "unknown" } } : {}),
      ip_blocklist: {
        tor_node: isTor,
        attack_source: fired.has("ip_attack_source"),
        email_spam: fired.has("ip_email_spam"),
      },
    });
  }
  return found;
}

const LEVELS = ["low", "medium", "high"];

/** The highest confidence of these signals, where one of them fired. */
function highest(fired: Map<string, Level>, names: readonly string[]): Level | undefined {
  const found = names.map((name) => LEVELS.indexOf(fired.get(name) ?? ""));
  return LEVELS[Math.max(...found)];
}

const vpnConfidence = (fired: Map<string, Level>): Level | undefined =>
  VPN_CONFIDENCES.find((name) => fired.has(name))?.slice("vpn_".length) ?? highest(fired, Object.values(VPN_METHODS));

const confidence = (field: string, level: Level | undefined): object => (level === undefined ? {} : { [field]: level });

function methodsOf(fired: Map<string, Level>, isWeb: boolean): Record<string, boolean> {
  const methods = Object.entries(VPN_METHODS).filter(([method]) => !isWeb || method !== "auxiliary_mobile");
  return Object.fromEntries(methods.map(([method, signal]) => [method, fired.has(signal)]));
}
