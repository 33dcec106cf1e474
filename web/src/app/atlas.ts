/** A map of the displayed rows: coloured by cluster, moved and magnified, with rows selected by a lasso or a box. */

import type { Box, Ellipse } from "../data";
import { GREY } from "../density";
import { oncePerFrame, svg } from "../dom";
import { PixelDensity } from "../pixel_density";
import { MANY, type Margins } from "../plane";
import { BEHIND, type Cloud, HIDDEN, packed, side } from "../raster";
import { Stage } from "../stage";
import { View } from "../view";
import type { Labels, Points } from "./arrays";
import type { Selection } from "./selection";

export type Tool = "move" | "lasso" | "box";

const MARGINS = { top: 12, right: 14, bottom: 46, left: 62 };
const RIM = { top: 8, right: 8, bottom: 8, left: 8 };
const REACH = 9; // pixels within which the pointer finds a row
const STILL = 4; // pixels that a pointer may move in a click
const DEVIATIONS = 2; // radius of ellipses
const LASSO = "lasso"; // name of the filter
const SIDE = 512; // cells of the grid by which a lasso finds rows, along each axis

interface AtlasOptions {
  hover?: (position: number | null, x: number, y: number) => void; // the row under the pointer, among the displayed ones
  pick?: (position: number) => void; // a row was clicked
}

interface Mark {
  center: [number, number];
  ellipse: Ellipse;
  rows: number;
}

export class Atlas {
  readonly stage: Stage;
  readonly view: View;
  tool: Tool = "move";
  moved: ((box: Box) => void) | null = null; // called when the view has changed
  private readonly cloud: Cloud;
  private labels: Labels | null = null;
  private names: string[] = [];
  private colors: string[] = [];
  private marks: Mark[] = [];
  private hidden = new Set<number>();
  private outlined = true;
  private selection: Selection | null = null;
  private highlight: Uint8Array | null = null; // rows that stand out from all others
  private unsubscribe: (() => void) | null = null;
  private path: [number, number][] = []; // the lasso, in units of the axes
  private ringed: [number, number] | null = null;
  private moving: [number, number][] = []; // centers of a fit that runs, as shares of the box
  private readonly draw = oncePerFrame(() => this.drawNow());
  private readonly margins: Margins;

  constructor(
    readonly points: Points,
    private readonly options: AtlasOptions = {},
  ) {
    const { header, x, y } = points;
    this.margins = header.title ? RIM : MARGINS;
    this.cloud = { x, y, color: new Uint32Array(x.length).fill(GREY) };
    this.stage = new Stage(this.margins, () => this.draw(), {
      heightOf: (element) => element.clientHeight,
      crowd: new PixelDensity(),
    });
    this.view = new View(
      this.stage.element,
      this.margins,
      () => header.box,
      () => {
        this.moved?.(this.view.box);
        this.draw();
      },
    );
    this.listen();
  }

  /** After the element has become part of the page. */
  open(): void {
    this.stage.fit();
    this.draw();
  }

  close(): void {
    this.unsubscribe?.();
    this.stage.element.remove();
  }

  /** Colour by cluster; `null`: all rows are grey. */
  colour(labels: Labels | null, names: string[], colors: string[]): void {
    const isOther = labels !== this.labels || names.length !== this.names.length;
    if (isOther) this.marks = labels ? this.measure(labels, names.length) : [];
    this.labels = labels;
    this.names = names;
    this.colors = colors;
    this.recolour();
  }

  show(hidden: Set<number>, outlined: boolean): void {
    this.hidden = hidden;
    this.outlined = outlined;
    this.recolour();
  }

  /** Rows to stand out, one byte a row; null: those of the selection. */
  emphasise(rows: Uint8Array | null): void {
    this.highlight = rows;
    this.recolour();
  }

  /** Follow a selection: rows outside of it are drawn faintly. */
  select(selection: Selection | null): void {
    this.unsubscribe?.();
    this.selection = selection;
    this.unsubscribe =
      selection?.version.subscribe(() => {
        if (!selection.has(LASSO)) this.path = [];
        this.recolour();
      }) ?? null;
  }

  /** The box of the map that is seen, as another map of the same axes shows it. */
  look(box: Box): void {
    if (this.view.box.every((value, i) => value === box[i])) return;
    this.view.box = box;
    this.draw();
  }

  /** Show the centers of a fit that runs, as shares of the whole map from the lower left. */
  follow(centers: [number, number][] | null): void {
    this.moving = centers ?? [];
    this.draw();
  }

  /** Mark a row of the table. */
  ring(row: number | null): void {
    const { rows, x, y, header } = this.points;
    const at = row === null ? -1 : rows ? rows.indexOf(row) : row;
    const [x0, x1, y0, y1] = header.box;
    const isPlaced = at >= 0 && at < x.length && !side(x[at]!) && !side(y[at]!);
    this.ringed = isPlaced ? [x0 + (x[at]! / 65535) * (x1 - x0), y0 + (y[at]! / 65535) * (y1 - y0)] : null;
    this.draw();
  }

  /** Select the rows of all that is seen, by key. */
  selectView(): void {
    const [x0, x1, y0, y1] = this.view.box;
    this.path = [
      [x0, y0],
      [x1, y0],
      [x1, y1],
      [x0, y1],
    ];
    this.applyPath();
  }

  get inner(): { left: number; top: number; width: number; height: number } {
    const { left, top, right, bottom } = this.margins;
    const { clientWidth, clientHeight } = this.stage.element;
    return { left, top, width: clientWidth - left - right, height: clientHeight - top - bottom };
  }

  private recolour(): void {
    const { color } = this.cloud;
    const { selection, highlight } = this;
    const labels = this.labels?.labels;
    if (!labels) {
      for (let i = 0; i < color.length; i++) color[i] = !selection || selection.selects(i) ? GREY : BEHIND;
      this.draw();
      return;
    }
    const size = labels instanceof Uint8Array ? 256 : 65536;
    const table = new Uint32Array(size).fill(this.hidden.has(this.names.length) ? HIDDEN : GREY);
    table.set(this.colors.map((value, j) => (this.hidden.has(j) ? HIDDEN : packed(value))));
    if (highlight) for (let i = 0; i < color.length; i++) color[i] = highlight[i] ? table[labels[i]!]! : BEHIND;
    else if (!selection?.active) for (let i = 0; i < color.length; i++) color[i] = table[labels[i]!]!;
    else for (let i = 0; i < color.length; i++) color[i] = selection.selects(i) ? table[labels[i]!]! : BEHIND;
    this.draw();
  }

  /** Mean and covariance of the rows of each cluster on this map. */
  private measure({ labels }: Labels, k: number): Mark[] {
    const { x, y } = this.points;
    const [x0, x1, y0, y1] = this.points.header.box;
    const [ax, ay] = [(x1 - x0) / 65535, (y1 - y0) / 65535];
    const sums = new Float64Array(6 * k);
    for (let i = 0; i < x.length; i++) {
      const j = labels[i]!;
      if (j >= k || side(x[i]!) || side(y[i]!)) continue;
      const [u, v] = [ax * x[i]!, ay * y[i]!];
      const at = 6 * j;
      sums[at]! += 1;
      sums[at + 1]! += u;
      sums[at + 2]! += v;
      sums[at + 3]! += u * u;
      sums[at + 4]! += u * v;
      sums[at + 5]! += v * v;
    }
    return Array.from({ length: k }, (_, j) => {
      const [rows, u, v, uu, uv, vv] = sums.subarray(6 * j, 6 * j + 6) as unknown as number[];
      const n = Math.max(1, rows!);
      const center: [number, number] = [x0 + u! / n, y0 + v! / n];
      const [xx, xy, yy] = [uu! / n - (u! / n) ** 2, uv! / n - (u! / n) * (v! / n), vv! / n - (v! / n) ** 2];
      const [half, middle] = [(xx - yy) / 2, (xx + yy) / 2];
      const away = Math.hypot(half, xy);
      const [a, b] = [middle + away, middle - away].map((value) => DEVIATIONS * Math.sqrt(Math.max(0, value)));
      return { center, ellipse: [...center, a!, b!, 0.5 * Math.atan2(xy, half)], rows: rows! };
    });
  }

  private drawNow(): void {
    if (!this.stage.open) return;
    const { header } = this.points;
    const plane = this.stage.plane(this.view.box);
    this.stage.points(this.cloud, header.box, plane);
    const listed = this.marks.map((mark, j) => ({ mark, j })).filter(({ mark, j }) => mark.rows && !this.hidden.has(j));
    const outlines = this.outlined
      ? listed.flatMap(({ mark, j }) => plane.ellipse(mark.ellipse, this.colors[j]!, this.names.length > MANY))
      : [];
    const numbers = listed.flatMap(({ mark, j }) => plane.number(j, mark.center, this.names[j]!, this.colors[j]!));
    const lasso = this.path.length > 1 ? [svg("path", { class: "lasso", d: `${plane.path(this.path)}Z` })] : [];
    const ring = this.ringed
      ? [svg("circle", { class: "ring", cx: plane.x(this.ringed[0]), cy: plane.y(this.ringed[1]), r: 8 })]
      : [];
    const [x0, x1, y0, y1] = header.box;
    const moving = this.moving.map(([right, up]) => {
      const place = { cx: plane.x(x0 + right * (x1 - x0)), cy: plane.y(y0 + up * (y1 - y0)) };
      return svg("circle", { class: "center", ...place, r: 6 });
    });
    const axes = header.title
      ? [plane.rim()]
      : [plane.xAxis(header.axes[0]!), ...(header.axes[1] ? [plane.yAxis(header.axes[1])] : [])];
    this.stage.marks(plane, axes, [...outlines, ...numbers, ...lasso, ...ring, ...moving]);
  }

  private listen(): void {
    const { element } = this.stage;
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    this.view.keys();
    this.view.pointers((event) => this.tool === "move" || event.shiftKey);
    element.addEventListener("pointerdown", (event) => this.start(event));
    element.addEventListener("pointerleave", () => this.options.hover?.(null, 0, 0));
    let asked: PointerEvent | null = null;
    element.addEventListener("pointermove", (event) => {
      if (asked === null) requestAnimationFrame(() => this.seek(asked!, () => (asked = null)));
      asked = event;
    });
    let pressed: PointerEvent | null = null;
    element.addEventListener("pointerdown", (event) => {
      pressed = event;
    });
    element.addEventListener("click", (event) => {
      const isDrag = pressed && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) > STILL;
      const found = this.tool === "move" && !isDrag ? this.nearest(event) : null;
      if (found !== null) this.options.pick?.(found);
    });
  }

  private seek(event: PointerEvent, done: () => void): void {
    done();
    if (event.buttons === 0 && this.options.hover) {
      const at = this.stage.element.getBoundingClientRect();
      this.options.hover(this.nearest(event), event.clientX - at.left, event.clientY - at.top);
    }
  }

  /** The row nearest to a pointer; one pass over all rows takes about as long as drawing them. */
  private nearest(event: MouseEvent): number | null {
    const { x, y, color } = this.cloud;
    const [right, up] = this.view.place(event);
    const [x0, x1, y0, y1] = this.view.box;
    const all = this.points.header.box;
    const { width, height } = this.inner;
    const wide = (width * (all[1] - all[0])) / (x1 - x0) / 65535; // pixels a step
    const high = (height * (all[3] - all[2])) / (y1 - y0) / 65535;
    const px = ((x0 + right * (x1 - x0) - all[0]) / (all[1] - all[0])) * 65535;
    const py = ((y0 + up * (y1 - y0) - all[2]) / (all[3] - all[2])) * 65535;
    let [best, found] = [REACH * REACH, -1];
    for (let i = 0; i < x.length; i++) {
      const dx = (x[i]! - px) * wide;
      if (dx > REACH || dx < -REACH) continue;
      const dy = (y[i]! - py) * high;
      const away = dx * dx + dy * dy;
      if (away < best && color[i]! < BEHIND && !side(x[i]!) && !side(y[i]!)) [best, found] = [away, i];
    }
    return found < 0 ? null : found;
  }

  private start(event: PointerEvent): void {
    if (this.tool === "move" || event.shiftKey || event.button !== 0 || !this.selection) return;
    const { element } = this.stage;
    element.setPointerCapture(event.pointerId);
    const first = this.at(event);
    this.path = [first];
    const extend = (next: PointerEvent) => {
      if (next.pointerId !== event.pointerId) return;
      const [x, y] = this.at(next);
      if (this.tool === "box") this.path = [first, [x, first[1]], [x, y], [first[0], y]];
      else this.path.push([x, y]);
      if (this.path.length > 2) this.applyPath();
    };
    const end = () => {
      element.removeEventListener("pointermove", extend);
      if (this.path.length < 3) this.selection?.remove(LASSO);
    };
    element.addEventListener("pointermove", extend);
    element.addEventListener("pointerup", end, { once: true });
    element.addEventListener("pointercancel", end, { once: true });
  }

  private at(event: MouseEvent): [number, number] {
    const [right, up] = this.view.place(event);
    const [x0, x1, y0, y1] = this.view.box;
    return [x0 + right * (x1 - x0), y0 + up * (y1 - y0)];
  }

  /** Select the rows within the lasso: it is drawn into a grid over its bounds, which answers for each row. */
  private applyPath(): void {
    const { x, y } = this.cloud;
    const all = this.points.header.box;
    const steps = this.path.map(([u, v]): [number, number] => [
      ((u - all[0]) / (all[1] - all[0])) * 65535,
      ((v - all[2]) / (all[3] - all[2])) * 65535,
    ]);
    const [left, right] = [Math.min(...steps.map(([u]) => u)), Math.max(...steps.map(([u]) => u))];
    const [low, high] = [Math.min(...steps.map(([, v]) => v)), Math.max(...steps.map(([, v]) => v))];
    const [wide, tall] = [SIDE / (right - left || 1), SIDE / (high - low || 1)];
    const inside = filled(steps.map(([u, v]) => [(u - left) * wide, (v - low) * tall]));
    this.selection?.byRow(LASSO, (i) => {
      const [u, v] = [x[i]!, y[i]!];
      if (u < left || u > right || v < low || v > high) return false;
      const cell = Math.min(SIDE - 1, ((v - low) * tall) | 0) * SIDE + Math.min(SIDE - 1, ((u - left) * wide) | 0);
      return inside[cell]! !== 0 && !side(u) && !side(v);
    });
  }
}

let grid: CanvasRenderingContext2D | null = null;

/** The cells within a polygon. */
function filled(polygon: number[][]): Uint8Array {
  if (!grid) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SIDE, SIDE];
    grid = canvas.getContext("2d", { willReadFrequently: true })!;
  }
  grid.clearRect(0, 0, SIDE, SIDE);
  grid.beginPath();
  for (const [u, v] of polygon) grid.lineTo(u!, v!);
  grid.fill("evenodd");
  const { data } = grid.getImageData(0, 0, SIDE, SIDE);
  const cells = new Uint8Array(SIDE * SIDE);
  for (let i = 0; i < cells.length; i++) cells[i] = data[4 * i + 3]! > 127 ? 1 : 0;
  return cells;
}
