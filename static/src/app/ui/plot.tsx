// Bars over time, drawn as SVG from numbers, with the same numbers as a table beside.

import { t } from "../lib/i18n.ts";

export interface Bar {
  /** When: for the table, and for the axis where there is room. */
  name: string;
  value: number;
  /** The value in words. */
  text: string;
}

const [WIDTH, HEIGHT, FOOT] = [640, 150, 20];

/** `label`: what is drawn, also for those who do not see it. `most`: the largest value in words. `time`: heading of the times. */
export function Plot({ label, time, most, bars }: { label: string; time: string; most: string; bars: readonly Bar[] }) {
  const top = Math.max(...bars.map(({ value }) => value), 0);
  const step = WIDTH / bars.length;
  const every = Math.ceil(bars.length / 8);
  const room = HEIGHT - FOOT - 16;
  return (
    <figure class="plot">
      <figcaption>{label}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}: ${most}`}>
        <line class="plot-line" x1="0" y1={HEIGHT - FOOT} x2={WIDTH} y2={HEIGHT - FOOT} />
        <line class="plot-line is-top" x1="0" y1={HEIGHT - FOOT - room} x2={WIDTH} y2={HEIGHT - FOOT - room} />
        <text class="plot-text" x="0" y="11">{most}</text>
        {bars.map(({ name, value, text }, index) => {
          const height = top ? Math.max(value ? 2 : 0, (value / top) * room) : 0;
          return (
            <g key={name}>
              <rect
                class="plot-bar"
                x={index * step + step * 0.12}
                y={HEIGHT - FOOT - height}
                width={step * 0.76}
                height={height}
                rx="2"
              >
                <title>{`${name}: ${text}`}</title>
              </rect>
              {index % every === 0 && <text class="plot-text" x={index * step + 2} y={HEIGHT - 5}>{name}</text>}
            </g>
          );
        })}
      </svg>
      <details>
        <summary>{t("usage.table")}</summary>
        <table class="usage-table">
          <thead>
            <tr>
              <th scope="col">{time}</th>
              <th scope="col" class="is-number">{label}</th>
            </tr>
          </thead>
          <tbody>
            {bars.map(({ name, text }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="is-number">{text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
