/** How many came from each country, as a map of squares. The list beside it says the same. */
/** @jsxImportSource preact */
import { count, country } from "./format.js";
import { COLUMNS, LINES, TILES } from "./tiles.js";

const SQUARE = 20;

/** How dark a square is, by logarithm: from a fifth to whole. */
export const shade = (value: number, most: number): number => (value === 0 ? 0 : 0.2 + (0.8 * Math.log1p(value)) / Math.log1p(most));

export function WorldMap({ counts }: { counts: { country_code: string; count: number }[] }) {
  const known = new Map(counts.map((one) => [one.country_code, one.count]));
  const most = Math.max(1, ...known.values());
  return (
    <svg class="map" viewBox={`0 0 ${COLUMNS * SQUARE} ${LINES * SQUARE}`} role="img" aria-label="Map of countries, one square each. The list beside it has the numbers.">
      {[...TILES].map(([code, [x, y]]) => {
        const value = known.get(code) ?? 0;
        return (
          <g key={code} transform={`translate(${x * SQUARE} ${y * SQUARE})`}>
            <rect class="land" width={SQUARE - 1} height={SQUARE - 1} rx="2" />
            {value > 0 && <rect class="came" width={SQUARE - 1} height={SQUARE - 1} rx="2" fill-opacity={shade(value, most)} />}
            <text class={shade(value, most) > 0.6 ? "on" : ""} x={(SQUARE - 1) / 2} y={(SQUARE - 1) / 2 + 3} text-anchor="middle">{code}</text>
            <title>{`${country(code)}: ${count(value)}`}</title>
          </g>
        );
      })}
    </svg>
  );
}
