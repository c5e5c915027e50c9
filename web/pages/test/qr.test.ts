import jsQR from "jsqr";
import { describe, expect, it } from "vitest";
import { drawn } from "../console/qr.js";

const PIXELS = 4;

/** What a camera reads of the drawing. */
function read({ path, side }: { path: string; side: number }): string | undefined {
  const width = side * PIXELS;
  const image = new Uint8ClampedArray(4 * width * width).fill(255);
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g))
    for (let row = 0; row < PIXELS; row += 1)
      for (let column = 0; column < PIXELS; column += 1) {
        const at = 4 * ((Number(y) * PIXELS + row) * width + Number(x) * PIXELS + column);
        image.fill(0, at, at + 3);
      }
  return jsQR(image, width, width)?.data;
}

describe("a QR code", () => {
  const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
  const of = (issuer: string, email: string) => `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(email)}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`;
  it.each([
    of("svc (Shop)", "ada@shop.example"),
    of(`svc (${"Käse & Söhne 株式会社 ".repeat(4)})`, `${"long.".repeat(12)}name@${"sub.".repeat(40)}example`),
    of(`svc (${"é".repeat(100)})`, `${"ü".repeat(60)}@${"ä".repeat(180)}.example`),
    "x",
  ])("is read as its text: %s", (text) => expect(read(drawn(text))).toBe(text));
});
