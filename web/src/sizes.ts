/** How many rows each cluster has, as numbers and bars. */

import type { Film } from "./data";
import { html, svg, swatch } from "./dom";

export class Sizes {
  readonly element = html("table", { class: "sizes" });
  private readonly most: number;
  private readonly lines: { count: HTMLElement; bar: SVGElement }[];

  constructor(data: Film) {
    this.most = Math.max(1, ...data.frames.flatMap((frame) => frame.sizes));
    this.lines = data.names.map((name, j) => {
      const count = html("td", { class: "num" });
      const bar = svg("rect", { height: 9, rx: 3, fill: data.colors[j]! });
      const named = html("td", { class: "name", title: name }, swatch(data.colors[j]!), name);
      const drawn = html("td", { class: "share" }, svg("svg", { "aria-hidden": "true" }, bar));
      this.element.append(html("tr", {}, named, count, drawn));
      return { count, bar };
    });
  }

  show(sizes: number[]): void {
    this.lines.forEach(({ count, bar }, j) => {
      const size = sizes[j] ?? 0;
      count.textContent = Math.round(size).toLocaleString("en");
      bar.setAttribute("width", `${((100 * size) / this.most).toFixed(1)}%`);
    });
  }
}
