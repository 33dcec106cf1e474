/** Criteria for the number of clusters, each a line over K whose points are buttons. */

import { svg } from "../dom";
import { shortened } from "../formatting";
import { Plane } from "../plane";
import type { Choice, CriterionEvent } from "./api";
import { Place } from "./controls";

const [WIDTH, HEIGHT] = [300, 176];
const MARGINS = { top: 12, right: 12, bottom: 26, left: 52 };

/** The criteria of a run that has ended, or those that events have brought so far. */
export function criteriaOf(live: CriterionEvent[], choice: Choice | null): CriterionEvent[] {
  return choice?.criteria ?? live;
}

interface Props {
  criteria: CriterionEvent[];
  k: number | null;
  pick: ((k: number) => void) | null;
}

export function CriterionCharts({ criteria, k, pick }: Props) {
  return (
    <div class="charts">
      {criteria
        .filter(({ values }) => values.some((value) => value !== null))
        .map((one) => (
          <CriterionChart key={one.criterion} criterion={one} k={k} pick={pick} />
        ))}
    </div>
  );
}

interface ChartProps {
  criterion: CriterionEvent;
  k: number | null;
  pick: ((k: number) => void) | null;
}

function CriterionChart({ criterion, k, pick }: ChartProps) {
  const { ks, values, name, note } = criterion;
  return (
    <figure class="criterion">
      <figcaption>
        <strong>{name}</strong>
        {criterion.k !== null && <span class="muted"> votes for {criterion.k}</span>}
      </figcaption>
      <Place
        class="plot"
        inputs={[criterion, k]}
        make={(element) => {
          element.replaceChildren(lineChart(criterion, k, pick));
          return undefined;
        }}
      />
      <table class="unseen">
        <caption>{name}</caption>
        <tbody>
          {ks.map((one, i) => (
            <tr key={one}>
              <th>{one}</th>
              <td>{values[i] === null ? "" : shortened(values[i]!)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p class="muted">{note}</p>}
    </figure>
  );
}

/** A line over K whose points are buttons. */
function lineChart({ ks, values, k: vote, name }: CriterionEvent, k: number | null, pick: Props["pick"]): SVGElement {
  const points = ks.flatMap((one, i): [number, number][] => (values[i] === null ? [] : [[one, values[i]!]]));
  const heights = points.map(([, value]) => value);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const pad = 0.08 * (high - low || Math.abs(high) || 1);
  const plane = new Plane(
    WIDTH,
    HEIGHT,
    [Math.min(...ks) - 0.4, Math.max(...ks) + 0.4, low - pad, high + pad],
    MARGINS,
  );
  const chart = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "group",
    "aria-label": `${name} by number of clusters`,
  });
  chart.append(
    plane.yAxis(""),
    svg("line", { class: "axis", x1: MARGINS.left, x2: plane.right, y1: plane.bottom, y2: plane.bottom }),
  );
  if (vote !== null)
    chart.append(
      svg("line", { class: "choice", x1: plane.x(vote), x2: plane.x(vote), y1: MARGINS.top, y2: plane.bottom }),
    );
  chart.append(svg("path", { class: "curve ink", d: plane.path(points) }));
  const stride = Math.ceil(ks.length / 12);
  for (const [i, [one, value]] of points.entries()) {
    const [x, y] = [plane.x(one), plane.y(value)];
    const wide = (plane.right - MARGINS.left) / ks.length;
    const label = `K = ${one}: ${shortened(value)}`;
    const group = svg(
      "g",
      {
        class: one === k ? "point on" : "point",
        role: "button",
        tabindex: i === 0 ? 0 : -1,
        "aria-label": label,
        "data-tip": label,
        "data-stop": true,
        "data-k": one,
      },
      svg("rect", { class: "hit", x: x - wide / 2, y: MARGINS.top, width: wide, height: plane.bottom - MARGINS.top }),
      svg("circle", { cx: x, cy: y, r: one === k ? 5.5 : 3.5 }),
    );
    if (i % stride === 0)
      chart.append(svg("text", { class: "tick-text", x, y: plane.bottom + 17, "text-anchor": "middle" }, String(one)));
    group.addEventListener("click", () => pick?.(one));
    chart.append(group);
  }
  chart.addEventListener("keydown", (event) => {
    const stops = [...chart.querySelectorAll<SVGElement>("[data-stop]")];
    const from = stops.indexOf(event.target as SVGElement);
    const to = stops[from + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick?.(points[from]![0]);
    } else if (to && to !== stops[from]) {
      event.preventDefault();
      to.focus();
    }
  });
  return chart;
}
