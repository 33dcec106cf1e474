/** The objective over the steps, with a cursor. */

import type { Film } from "./data";
import { svg } from "./dom";

const WIDTH = 240;
const HEIGHT = 96;
const EDGE = 7;
const ROUNDING = 1e-9; // relative differences of objectives that mean nothing

export class Curve {
  readonly element = svg("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  private readonly objective: [number, number][];
  private readonly bound: [number, number][];
  private readonly done = svg("path", { class: "line" });
  private readonly cursor = svg("circle", { class: "cursor", r: 5 });

  constructor(data: Film) {
    const objective = data.frames.map((frame) => frame.objective);
    const bound = data.frames.map((frame) => frame.bound);
    const all = [...objective, ...bound].filter((value) => value !== null);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const isFlat = high - low <= ROUNDING * Math.max(Math.abs(low), Math.abs(high));
    const last = Math.max(1, data.frames.length - 1);
    const x = (i: number) => EDGE + (i / last) * (WIDTH - 2 * EDGE);
    const y = (value: number) => HEIGHT - EDGE - (isFlat ? 0.5 : (value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
    const points = (values: (number | null)[]) =>
      values.flatMap((value, i): [number, number][] => (value === null ? [] : [[x(i), y(value)]]));
    this.objective = objective.map((_, i) => {
      const known = objective.slice(0, i + 1).findLast((value) => value !== null) ?? all[0] ?? 0;
      return [x(i), y(known)];
    });
    this.bound = points(bound);
    this.element.setAttribute(
      "aria-label",
      `${data.objective.name} over the steps, ${data.objective.better} is better`,
    );
    this.element.append(svg("path", { class: "line rest", d: line(this.objective) }), this.done);
    if (this.bound.length) this.element.append(svg("path", { class: "bound", d: line(this.bound) }));
    this.element.append(this.cursor);
  }

  show(index: number): void {
    const [x, y] = this.objective[index]!;
    this.done.setAttribute("d", line(this.objective.slice(0, index + 1)));
    this.cursor.setAttribute("cx", String(x));
    this.cursor.setAttribute("cy", String(y));
  }
}

function line(points: [number, number][]): string {
  return points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}` : "";
}
