/** The map of clusters: any two axes, moved and magnified, clusters shown and hidden. */

import { type Box, type Ellipse, labels, type MapData, STEPS, words } from "./data";
import { Density } from "./density";
import { button, html, oncePerFrame, plural, svg } from "./dom";
import { Legend } from "./legend";
import { arrow, MANY, type Margins, type Plane, within } from "./plane";
import { type Cloud, HIDDEN, packed, side } from "./raster";
import { type Ground, Stage } from "./stage";
import { View } from "./view";

const MARGINS = { top: 10, right: 12, bottom: 46, left: 62 };
const RIM = { top: 6, right: 6, bottom: 6, left: 6 }; // without axes
const NONE = "#808080"; // colour of rows in no cluster, if the page has none
const NEAR = 8; // pixels of a cell, from which points are seen, too
const SEEN = 2.5; // pixels that a cell needs to be seen

export class ClusterMap {
  readonly live = html("div", { class: "live" });
  private readonly margins: Margins;
  private readonly stage: Stage;
  private readonly values: Uint16Array[];
  private readonly labels: Uint16Array;
  private readonly color: Uint32Array;
  private readonly grids: { axes: [number, number]; density: Density }[];
  private readonly legend: Legend;
  private readonly told = html("span", { class: "told" });
  private painted: { picture: HTMLCanvasElement; across: number; up: number } | null = null; // of these axes and colours
  private axes: [number, number];
  private readonly view: View;
  private readonly draw = oncePerFrame(() => this.drawNow());

  constructor(
    figure: HTMLElement,
    private readonly data: MapData,
  ) {
    this.margins = data.title ? RIM : MARGINS;
    this.stage = new Stage(this.margins, () => this.draw());
    this.values = data.axes.map((axis) => words(axis.values));
    this.labels = labels(data.labels, data.names.length);
    this.color = new Uint32Array(this.labels.length);
    this.grids = data.grids.map((grid) => ({ axes: grid.axes, density: Density.read(grid) }));
    this.axes = data.start;
    this.view = new View(
      this.stage.element,
      this.margins,
      () => this.whole(),
      () => this.draw(),
    );
    this.legend = new Legend(data, () => this.recolour());
    this.live.append(this.controls(), this.stage.element, ...this.legend.elements);
    figure.prepend(this.live);
    this.listen();
    this.stage.fit();
    this.recolour();
  }

  private whole(): Box {
    const [x, y] = this.axes.map((j) => this.data.axes[j]!) as [MapData["axes"][0], MapData["axes"][0]];
    return [x.low, x.high, y.low, y.high];
  }

  /** The colours of the clusters, and of none. */
  private table(): number[] {
    const { colors, noise } = this.data;
    return [...colors, noise ?? NONE].map((color, j) => (this.legend.shows(j) ? packed(color) : HIDDEN));
  }

  private recolour(): void {
    const table = this.table();
    for (let i = 0; i < this.color.length; i++) this.color[i] = table[this.labels[i]!]!;
    this.painted = null;
    this.draw();
  }

  /** The density along these axes, if there is one; the closer one looks, the more points stand out from it. */
  private ground(plane: Plane): Ground | undefined {
    const [i, j] = this.axes;
    const grid = this.grids.find(({ axes: [a, b] }) => (a === i && b === j) || (a === j && b === i));
    if (!grid) return undefined;
    const turned = grid.axes[0] !== i;
    const { up, across } = grid.density;
    const [x0, x1, y0, y1] = this.whole();
    const wide = (plane.x(x1) - plane.x(x0)) / (turned ? up : across);
    const high = (plane.y(y0) - plane.y(y1)) / (turned ? across : up);
    return { picture: this.paint(grid.density, turned, wide, high), near: within(2 * (wide / NEAR - 1), 0, 1) };
  }

  /** A density in cells that can be seen, those of the grid being so many pixels wide and high. */
  private paint(density: Density, turned: boolean, wide: number, high: number): HTMLCanvasElement {
    const [across, up] = [wide, high].map((pixels) => 2 ** within(Math.round(Math.log2(SEEN / pixels)), 0, 4)) as [
      number,
      number,
    ];
    if (this.painted?.across !== across || this.painted.up !== up) {
      const cells = turned ? density.merged(across, up) : density.merged(up, across);
      this.painted = { picture: cells.picture(this.table(), turned), across, up };
    }
    return this.painted.picture;
  }

  private drawNow(): void {
    const [i, j] = this.axes;
    const { axes, names, colors, centers } = this.data;
    const plane = this.stage.plane(this.view.box);
    const cloud: Cloud = { x: this.values[i]!, y: this.values[j]!, color: this.color };
    const ground = this.ground(plane);
    this.stage.points(cloud, this.whole(), plane, ground);
    this.told.textContent = this.tell(ground);
    const shown = colors.map((color, c) => ({ c, color })).filter(({ c }) => centers && this.legend.shows(c));
    const outlines = shown.flatMap(({ c, color }) =>
      this.ellipses(c).flatMap((e) => plane.ellipse(e, color, names.length > MANY)),
    );
    const [x0, x1, y0, y1] = this.whole();
    const numbers = shown.flatMap(({ c, color }) => {
      const [cx, cy] = [centers![c]![i]!, centers![c]![j]!];
      const [x, y] = [within(cx, x0, x1), within(cy, y0, y1)];
      return plane.number(c, [x, y], names[c]!, color, x !== cx || y !== cy);
    });
    const lines = this.data.title ? [plane.rim()] : [plane.xAxis(axes[i]!.name), plane.yAxis(axes[j]!.name)];
    this.stage.marks(plane, lines, [...outlines, ...this.arrows(plane, cloud), ...numbers]);
  }

  /** Arrows at the border to rows beyond it, one path for each cluster. */
  private arrows(plane: Plane, { x, y }: Cloud): SVGElement[] {
    const { colors, noise } = this.data;
    const [x0, x1, y0, y1] = this.whole();
    const paths = new Map<number, string>();
    for (let r = 0; r < x.length; r++) {
      const [right, up] = [side(x[r]!), side(y[r]!)];
      const label = this.labels[r]!;
      if ((!right && !up) || !this.legend.shows(label)) continue;
      const across = plane.x(x0 + (x[r]! / STEPS) * (x1 - x0));
      const down = plane.y(y0 + (y[r]! / STEPS) * (y1 - y0));
      paths.set(label, (paths.get(label) ?? "") + arrow(across, down, right, -up));
    }
    return [...paths].map(([label, d]) => svg("path", { class: "far", d, fill: colors[label] ?? noise ?? NONE }));
  }

  /** The shadow of a cluster's covariance on the two axes. */
  private ellipses(c: number): Ellipse[] {
    const { spreads, centers, deviations, axes } = this.data;
    if (!spreads || !centers) return [];
    const p = axes.length;
    const at = (a: number, b: number) =>
      spreads[c]![Math.min(a, b) * p - (Math.min(a, b) * (Math.min(a, b) + 1)) / 2 + Math.max(a, b)]!;
    const [i, j] = this.axes;
    const half = (at(i, i) - at(j, j)) / 2;
    const middle = (at(i, i) + at(j, j)) / 2;
    const away = Math.hypot(half, at(i, j));
    const [a, b] = [middle + away, middle - away].map((value) => deviations * Math.sqrt(Math.max(value, 0)));
    return [[centers[c]![i]!, centers[c]![j]!, a!, b!, 0.5 * Math.atan2(at(i, j), half)]];
  }

  private controls(): HTMLElement {
    const { axes } = this.data;
    const bar = html("div", { class: "bar" });
    if (axes.length > 2) bar.append(this.choice("across", 0), this.choice("up", 1));
    const buttons = html("span", { class: "buttons push" });
    buttons.append(
      button("Magnify", "plus", () => this.view.zoom(0.7)),
      button("Make smaller", "minus", () => this.view.zoom(1 / 0.7)),
      button("Show all", "reset", () => this.view.reset()),
    );
    bar.append(this.told, buttons);
    return bar;
  }

  /** How many rows are shown, of how many, and how. */
  private tell(ground?: Ground): string {
    const { rows, shown, beyond } = this.data;
    const some = shown.toLocaleString("en");
    const note = beyondText(beyond[this.axes[0]]![this.axes[1]]!);
    if (!ground) return (shown < rows ? `showing ${some} of ${plural(rows, "row")}` : plural(rows, "row")) + note;
    const how = ground.near ? `${some} of them as points` : "stronger where there are more";
    return `density of all ${plural(rows, "row")}, ${how}${note}`;
  }

  private choice(label: string, which: 0 | 1): HTMLElement {
    const options = this.data.axes.map((axis, j) =>
      html("option", { value: j, selected: j === this.axes[which] }, axis.name),
    );
    const select = html("select", { class: "choice" }, ...options);
    select.addEventListener("change", () => {
      const chosen: [number, number] = [...this.axes];
      chosen[which] = Number(select.value);
      this.axes = chosen;
      this.painted = null;
      this.view.reset();
    });
    return html("label", {}, label, select);
  }

  private listen(): void {
    const { element } = this.stage;
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    const about = "Map of clusters. Arrow keys move it, plus and minus change its scale, zero shows all.";
    element.setAttribute("aria-label", about);
    this.view.keys();
    this.view.pointers();
  }
}

/** Rows that are not within the limits of the axes; coterie/web/clustermap.py says the same. */
function beyondText(rows: number): string {
  return rows ? `; ${plural(rows, "row")} beyond the border (${rows === 1 ? "arrow" : "arrows"})` : "";
}
