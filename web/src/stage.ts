/** A canvas of points below an SVG of axes and marks, both as large as their place in the page. */

import type { Box } from "./data";
import { html, svg } from "./dom";
import { type Margins, Plane } from "./plane";
import { type Cloud, Raster } from "./raster";

const SHARPEST = 2; // pixels of the canvas per pixel of the page

export class Stage {
  readonly element = html("div", { class: "stage" });
  readonly canvas = html("canvas", { "aria-hidden": "true" });
  readonly overlay = svg("svg", { class: "overlay", "aria-hidden": "true" });
  private readonly raster = new Raster();
  private readonly inner = svg("svg", {});
  private width = 0;
  private height = 0;

  /** `redraw` is called whenever the place in the page has changed. */
  constructor(
    private readonly margins: Margins,
    redraw: () => void,
  ) {
    this.element.append(this.canvas, this.overlay);
    new ResizeObserver(() => this.fit() && redraw()).observe(this.element);
  }

  /** Whether there is room to draw: none within what is folded away. */
  get open(): boolean {
    return this.width > this.margins.left + this.margins.right;
  }

  plane(box: Box): Plane {
    return new Plane(this.width, this.height, box, this.margins);
  }

  /** Takes the width the page gives, and a height that goes with it; false if they are as before. */
  fit(): boolean {
    const width = Math.floor(this.element.clientWidth);
    if (!width || width === this.width) return false;
    this.width = width;
    this.height = Math.round(Math.min(560, Math.max(300, 0.62 * width)));
    this.element.style.height = `${this.height}px`;
    for (const [name, value] of [
      ["width", this.width],
      ["height", this.height],
    ] as const) {
      this.overlay.setAttribute(name, String(value));
    }
    return true;
  }

  /** Points whose steps go from the lower left to the upper right of `all`, seen through the plane's box. */
  points(cloud: Cloud, all: Box, plane: Plane): void {
    if (!this.open) return;
    const scale = Math.min(SHARPEST, window.devicePixelRatio || 1);
    const { left, top } = this.margins;
    const [width, height] = [plane.right - left, plane.bottom - top];
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    Object.assign(this.canvas.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    const placed = {
      left: (plane.x(all[0]) - left) * scale,
      right: (plane.x(all[1]) - left) * scale,
      bottom: (plane.y(all[2]) - top) * scale,
      top: (plane.y(all[3]) - top) * scale,
    };
    this.raster.draw(this.canvas, cloud, placed, scale);
  }

  /** Axes, and marks that do not leave the plane. */
  marks(plane: Plane, axes: SVGElement[], marks: SVGElement[]): void {
    if (!this.open) return;
    const { left, top } = this.margins;
    const [width, height] = [plane.right - left, plane.bottom - top];
    for (const [name, value] of Object.entries({ x: left, y: top, width, height })) {
      this.inner.setAttribute(name, String(value));
    }
    this.inner.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
    this.inner.replaceChildren(...marks);
    this.overlay.replaceChildren(this.inner, ...axes);
  }
}
