/** Where values lie in a picture, and the marks over its points; coterie/web/plane.py and still.py do the same. */

import type { Box, Ellipse } from "./data";
import { svg } from "./dom";
import { texts, ticks } from "./ticks";

export interface Margins {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

const ARROW = 9; // length of arrows to rows beyond the border
const NUMBERED = 60; // clusters whose centres have numbers
export const MANY = 20; // clusters, above which ellipses are thin

export class Plane {
  constructor(
    readonly width: number,
    readonly height: number,
    readonly box: Box,
    readonly margins: Margins,
  ) {}

  get right(): number {
    return this.width - this.margins.right;
  }

  get bottom(): number {
    return this.height - this.margins.bottom;
  }

  x(value: number): number {
    const [x0, x1] = this.box;
    return this.margins.left + ((value - x0) / (x1 - x0)) * (this.right - this.margins.left);
  }

  y(value: number): number {
    const [, , y0, y1] = this.box;
    return this.bottom - ((value - y0) / (y1 - y0)) * (this.bottom - this.margins.top);
  }

  xAxis(label: string): SVGElement {
    const { left } = this.margins;
    const y = this.bottom;
    const values = ticks(this.box[0], this.box[1], Math.max(2, (this.right - left) / 90));
    const named = texts(values);
    const marks = values.flatMap((value, i) => {
      const x = this.x(value);
      return [
        svg("line", { class: "tick", x1: x, x2: x, y1: y, y2: y + 5 }),
        svg("text", { class: "tick-text", x, y: y + 19, "text-anchor": "middle" }, named[i]!),
      ];
    });
    const line = svg("line", { class: "axis", x1: left, x2: this.right, y1: y, y2: y });
    const middle = (left + this.right) / 2;
    const name = svg("text", { class: "axis-text", x: middle, y: y + 38, "text-anchor": "middle" }, label);
    return svg("g", {}, line, ...marks, name);
  }

  yAxis(label: string): SVGElement {
    const { left, top } = this.margins;
    const values = ticks(this.box[2], this.box[3], Math.max(2, (this.bottom - top) / 55));
    const named = texts(values);
    const marks = values.flatMap((value, i) => {
      const y = this.y(value);
      return [
        svg("line", { class: "tick", x1: left - 5, x2: left, y1: y, y2: y }),
        svg("text", { class: "tick-text", x: left - 9, y: y + 4, "text-anchor": "end" }, named[i]!),
      ];
    });
    const line = svg("line", { class: "axis", x1: left, x2: left, y1: top, y2: this.bottom });
    const transform = `translate(14 ${(top + this.bottom) / 2}) rotate(-90)`;
    const name = svg("text", { class: "axis-text", transform, "text-anchor": "middle" }, label);
    return svg("g", {}, line, ...marks, name);
  }

  /** The `d` of a line through points. */
  path(points: Iterable<readonly [number, number]>): string {
    return `M${Array.from(points, ([x, y]) => `${this.x(x).toFixed(1)},${this.y(y).toFixed(1)}`).join("L")}`;
  }

  ellipse([cx, cy, a, b, angle]: Ellipse, color: string, thin: boolean): SVGElement[] {
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const around = Array.from({ length: 64 }, (_, i) => {
      const u = a * Math.cos((i * Math.PI) / 32);
      const v = b * Math.sin((i * Math.PI) / 32);
      return [cx + u * cos - v * sin, cy + u * sin + v * cos] as const;
    });
    const d = `${this.path(around)}Z`;
    if (thin) return [svg("path", { class: "ellipse thin", d, stroke: color })];
    return [svg("path", { class: "halo", d }), svg("path", { class: "ellipse", d, stroke: color })];
  }

  /** A frame in place of axes. */
  rim(): SVGElement {
    const { left, top } = this.margins;
    return svg("rect", { class: "rim", x: left, y: top, width: this.right - left, height: this.bottom - top });
  }

  /** The name of a cluster at its centre, whole within the plane; the first clusters only. */
  number(index: number, [cx, cy]: readonly [number, number], name: string, color: string, far = false): SVGElement[] {
    const inside = cx >= this.box[0] && cx <= this.box[1] && cy >= this.box[2] && cy <= this.box[3];
    if (index >= NUMBERED || !inside) return [];
    const longest = within(Math.floor((this.right - this.margins.left) / 40), 10, 24); // letters: more on a wide plane
    const shown = name.length > longest ? `${name.slice(0, longest - 1)}\u2026` : name;
    const half = Math.max(10, 4 * shown.length + 4);
    const rest = far ? ARROW + 4 : 2; // from the border, where arrows are
    const x = within(this.x(cx), this.margins.left + half + rest, this.right - half - rest);
    const y = within(this.y(cy), this.margins.top + 10 + rest, this.bottom - 10 - rest);
    const frame = svg("rect", { x: x - half, y: y - 10, width: 2 * half, height: 20, rx: 10, stroke: color });
    const text = svg("text", { x, y: y + 4, "text-anchor": "middle" }, shown);
    return [svg("g", { class: "number" }, svg("title", {}, name), frame, text)];
  }
}

/** The `d` of an arrow whose tip is at (x, y), in pixels; its direction is of -1, 0 and 1. */
export function arrow(x: number, y: number, dx: number, dy: number): string {
  const size = ARROW / Math.hypot(dx, dy);
  const [bx, by] = [x - dx * size, y - dy * size];
  const [wx, wy] = [0.5 * dy * size, 0.5 * dx * size];
  const corners = [
    [x, y],
    [bx - wx, by + wy],
    [bx + wx, by - wy],
  ];
  return `M${corners.map((corner) => corner.map((value) => value.toFixed(1)).join(",")).join("L")}Z`;
}

export function within(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}
