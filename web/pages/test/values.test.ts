import { describe, expect, it } from "vitest";
import { stacked, ticks } from "../console/chart.js";
import { apart, count, country, literal, many, moment, money, share, shortVersion, total, utc, words } from "../console/format.js";
import { type Message, parser } from "../console/stream.js";
import { alike } from "../console/visitors.js";

describe("values for people", () => {
  it("counts", () => {
    expect([count(1234567), many(1, "visit"), many(2000, "visit")]).toEqual(["1,234,567", "1 visit", "2,000 visits"]);
  });

  it("points out accounts that look like another one", () => {
    const found = alike(["shop-1", "shop-2", "Shop-1", "shop-1\u200b", "\uff53hop -2", "shop-1"]);
    expect([...found]).toEqual([["Shop-1", "shop-1"], ["shop-1", "Shop-1"], ["shop-1\u200b", "shop-1"], ["\uff53hop -2", "shop-2"], ["shop-2", "\uff53hop -2"]]);
    expect(alike(["shop-1", "shop1", "shop-2"]).size).toBe(0);
  });

  it("keeps what turns the direction of writing to the text that has it", () => {
    expect(apart("key\u202e")).toBe("\u2068key\u202e\u2069");
    expect(literal('tag == "a\u202eb\u061c" && score > 0')).toBe('tag == "a\\u202eb\\u061c" && score > 0');
  });

  it("shows shares, with a decimal where they are small", () => {
    expect([share(1, 2), share(1, 100), share(0, 100), share(0, 0), share(1, 2000), share(1, 2001)]).toEqual(["50 %", "1.0 %", "0 %", "0 %", "0.1 %", "< 0.1 %"]);
  });

  it("shows money to the cent, and finer where it must, never rounded", () => {
    expect([money(450), money(12_345_678), money(999_999_251_178)]).toEqual(["$0.00045", "$12.345678", "$999,999.251178"]);
    expect(money(360_000, [360_000, 384_000])).toBe("$0.3600");
    expect([money(10_000_000), money(3_000), money(-1_234_500_000), money(0)]).toEqual(["$10.00", "$0.0030", "−$1,234.50", "$0.00"]);
  });

  it("shows the date of what is not of today", () => {
    const at = new Date(2026, 0, 5, 9, 3, 7);
    expect(moment(at.toISOString(), at)).toBe("09:03:07");
    expect(moment(at.toISOString(), new Date(2026, 0, 6))).toBe("5 Jan, 09:03:07");
    expect(moment(at.toISOString(), new Date(2027, 0, 5))).toBe("5 Jan 2026, 09:03:07");
    expect(utc("2026-01-05T10:00:00.000Z")).toBe("2026-01-05 10:00:00 UTC");
  });

  it("names countries, and leaves what is none as it is", () => {
    expect([country("GB"), country("??")]).toEqual(["United Kingdom", "??"]);
  });

  it("makes words of names", () => {
    expect([words("past_due"), words("vpn"), words("ip_reputation")]).toEqual(["past due", "VPN", "IP reputation"]);
  });

  it("says how many a list has, or that there are more", () => {
    expect([total({ count: 1, is_exact: true }, "event"), total({ count: 540, is_exact: true }, "event")]).toEqual(["1 event", "540 events"]);
    expect(total({ count: 10_000, is_exact: false }, "event")).toBe("more than 10,000 events");
  });

  it("names each day below a chart, and hours where there is room", () => {
    const first = new Date(2026, 0, 5, 14).getTime() / 1000;
    const hours = (number: number) => Array.from({ length: number }, (_, at) => first + 3600 * at);
    const texts = (number: number, apart: number) => [...ticks(hours(number), 3600, apart).values()];
    expect(texts(168, 12)).toEqual(expect.arrayContaining(["6 Jan", "7 Jan", "8 Jan", "9 Jan", "10 Jan", "11 Jan", "12 Jan"]));
    expect(texts(25, 2.5)).toEqual(["15:00", "18:00", "21:00", "6 Jan", "03:00", "06:00", "09:00", "12:00"]);
    expect(texts(168, 40)).toEqual(["6 Jan", "8 Jan", "10 Jan", "12 Jan"]);
    const days = [0, 1, 2, 3].map((day) => Date.UTC(2026, 0, 5 + day) / 1000);
    expect([...ticks(days, 86_400, 1.5).values()]).toEqual(["5 Jan", "7 Jan"]);
  });

  it("stacks series upon each other", () => {
    expect(stacked([[1, 2], [3, 4], [5, 6]])).toEqual([[1, 2], [4, 6], [9, 12]]);
  });
});

describe("the event stream", () => {
  function parsed(...pieces: string[]): Message[] {
    const found: Message[] = [];
    const take = parser((message) => found.push(message));
    pieces.forEach(take);
    return found;
  }

  it("hands out each message once it is complete", () => {
    const text = 'id: a\nevent: identification\ndata: {"x": 1}\n\nevent: missed\ndata: {"count": 3}\n\n';
    const expected = [
      { id: "a", event: "identification", data: '{"x": 1}' },
      { id: "", event: "missed", data: '{"count": 3}' },
    ];
    expect(parsed(text)).toEqual(expected);
    expect(parsed(...text)).toEqual(expected);
    expect(parsed(text.slice(0, -1))).toEqual(expected.slice(0, 1));
  });

  it("leaves comments out, and takes lines that end in CR LF", () => {
    expect(parsed(": ping\r\n\r\n", "data:a\r\ndata:b\r\n\r\n")).toEqual([{ id: "", event: "message", data: "a\nb" }]);
  });
});

it("shortens versions to what people call them", () => {
  expect([shortVersion("147.0.7727.117"), shortVersion("26.4.1"), shortVersion("142.0"), shortVersion("9"), shortVersion(undefined)])
    .toEqual(["147", "26.4", "142", "9", undefined]);
});
