/** A text as a QR code: dark on light in every color scheme, as cameras expect it. */
/** @jsxImportSource preact */
import { generate } from "lean-qr/nano";

/** Modules of light around it (ISO/IEC 18004, 9.1). */
const QUIET = 4;

/** The dark modules as the path of an SVG, one unit each, and how many units each side has with the margin. */
export function drawn(text: string): { path: string; side: number } {
  const code = generate(text);
  let path = "";
  for (let y = 0; y < code.size; y += 1)
    for (let x = 0; x < code.size; x += 1) if (code.get(x, y)) path += `M${x + QUIET} ${y + QUIET}h1v1h-1z`;
  return { path, side: code.size + 2 * QUIET };
}

/** Longer texts, such as of an organization with a hundred Chinese letters in its name, make modules too small for a camera. */
const LONGEST = 1000;

export function Qr({ text, says }: { text: string; says: string }) {
  if (text.length > LONGEST) return null;
  const { path, side } = drawn(text);
  return (
    <svg class="qr" role="img" aria-label={says} viewBox={`0 0 ${side} ${side}`} shape-rendering="crispEdges">
      <rect width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
