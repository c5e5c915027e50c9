import { describe, expect, it } from "vitest";
import { filters, instantOf, matchesOf, period, tidy, wanted } from "../console/filters.js";
import { read, refusalIn, tokenIn, write } from "../console/hash.js";
import { ownerOf, who } from "../console/state.js";

describe("places in the address", () => {
  it("reads a screen, an id and a query", () => {
    expect(read("#/events/abc?environment=staging&level=high")).toEqual({
      screen: "events",
      id: "abc",
      query: { environment: "staging", level: "high" },
    });
  });

  it("begins with the live screen where the address names none", () => {
    for (const hash of ["", "#", "#/", "#token"]) expect(read(hash)).toMatchObject({ screen: "live", id: "" });
  });

  it("writes what it reads, whatever the values are", () => {
    const query = { tag: "a&b=c?d#e/é %", ip_address: "2001:db8::1" };
    const place = read(write("visitors", "x/y?z#", query));
    expect(place).toEqual({ screen: "visitors", id: "x/y?z#", query });
  });

  it("leaves empty values out", () => {
    expect(write("events", "", { level: "", tag: undefined, country: "GB" })).toBe("#/events?country=GB");
    expect(read("#/events?level=")).toMatchObject({ query: {} });
  });

  it("keeps an id with a broken escape as it stands", () => {
    expect(read("#/events/%zz").id).toBe("%zz");
  });

  it("takes any other fragment for the token of a link", () => {
    expect(tokenIn("#svc_cl_abc")).toBe("svc_cl_abc");
    for (const hash of ["", "#", "#/live", "#openid=refused"]) expect(tokenIn(hash)).toBeUndefined();
  });

  it("says why the provider let nobody in, and nothing that an address brings", () => {
    expect(refusalIn("#openid=elsewhere")).toContain("Sign in on this page");
    expect(refusalIn("#openid=no_role")).toContain("no role here");
    expect(refusalIn("#openid=<b>x</b>")).toBe(refusalIn("#openid=refused"));
    for (const hash of ["", "#/live", "#svc_ci_abc"]) expect(refusalIn(hash)).toBeUndefined();
  });

  it("names the owner of a session", () => {
    const of = { organization: { id: "o", name: "shop" }, region: "us", expires_at: "", idle_minutes: 30 };
    const member = { ...of, role: "viewer", member: { id: "mem_1", email: "a@b.cd", name: "Ada", role: "viewer", has_totp: false, has_password: true, recovery_codes_left: 0 } } as const;
    const key = { ...of, role: "admin", key: { id: "key_1", name: "robot", role: "admin", last4: "x7Qa" } } as const;
    expect([who(member), who(key)]).toEqual(["Ada, viewer", "robot …x7Qa, admin"]);
    expect([ownerOf(member), ownerOf(key)]).toEqual(["mem_1", "key_1"]);
  });
});

describe("filters in the address", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");

  it("become parameters, and nothing else of the query does", () => {
    const query = { environment: "production", window: "7d", level: "high", tag: "anna", account_id: "user 1", decision: "block", asn: "1", action: "log_in", evil: "x" };
    expect(filters(query)).toEqual({ level: "high", tag: "anna", account_id: "user 1", decision: "block", asn: "1", action: "log_in" });
  });

  it("carry what a rule decided, or matched in shadow mode", () => {
    const address = (mode: string | undefined) => write("events", "", { environment: "production", ...matchesOf("rul_a", mode) });
    expect(address("shadow")).toBe("#/events?environment=production&rule=rul_a&shadow=true");
    for (const mode of ["active", "off", undefined]) expect(address(mode)).toBe("#/events?environment=production&rule=rul_a");
    expect(filters(read(address("shadow")).query)).toEqual({ rule: "rul_a", shadow: "true" });
  });

  it("are tidied as people type them", () => {
    expect(tidy("country", " gb ")).toBe("GB");
    expect(tidy("tag", " Anna ")).toBe("Anna");
    expect(tidy("asn", "AS20712")).toBe("20712");
  });

  it("say when the window begins", () => {
    expect(period({}, now)).toEqual({ from: "2026-01-30T12:00:00.000Z" });
    expect(period({ window: "1h" }, now)).toEqual({ from: "2026-01-31T11:00:00.000Z" });
    expect(period({ window: "nonsense" }, now)).toEqual({ from: "2026-01-30T12:00:00.000Z" });
    const later = now + 51 * 60_000;
    expect(period({ window: "7d" }, later)).toEqual({ from: "2026-01-24T12:00:00.000Z" });
    expect(period({ window: "1h" }, later)).toEqual({ from: "2026-01-31T11:51:00.000Z" });
    expect(period({ window: "30d" }, later)).toEqual({ from: "2026-01-01T13:00:00.000Z" });
  });

  it("never ask for more than the 30 days that the service keeps", () => {
    expect(Date.parse(period({ window: "30d" }, now).from)).toBeGreaterThan(now - 30 * 86_400_000);
  });

  it("take a window of one's own, open at its end too", () => {
    const from = "2026-01-02T00:00:00.000Z";
    expect(period({ window: "between", from }, now)).toEqual({ from });
    expect(period({ window: "between", from, to: "2026-01-03T00:00Z" }, now)).toEqual({ from, to: "2026-01-03T00:00:00.000Z" });
    expect(period({ window: "between", to: "2026-01-03T00:00Z" }, now)).toEqual({ from: "2026-01-01T12:01:00.000Z", to: "2026-01-03T00:00:00.000Z" });
    expect(period({ window: "between" }, now)).toEqual({ from: "2026-01-30T12:00:00.000Z" });
  });

  it("leave out a time that is none", () => {
    expect(instantOf("yesterday")).toBeUndefined();
    expect(period({ window: "between", from: "yesterday" }, now)).toEqual({ from: "2026-01-30T12:00:00.000Z" });
    expect(period({ window: "between", from: "2026-01-02", to: "soon" }, now)).toEqual({ from: "2026-01-02T00:00:00.000Z" });
  });
});

describe("what somebody looks for", () => {
  it("is told by its form", () => {
    expect(wanted(" 019B76DA-a800-7000-8000-000000000000 ")).toEqual(["events", "019b76da-a800-7000-8000-000000000000"]);
    expect(wanted("0qppzPLvL54VURDkQrfS")).toEqual(["visitors", "0qppzPLvL54VURDkQrfS"]);
    for (const text of ["203.0.113.7", "95.194.0.0/16", "order-1042", "0qppzPLv…", "550e8400-e29b-41d4-a716-446655440000"]) expect(wanted(` ${text} `)).toEqual(["search", "", { q: text }]);
  });
});
