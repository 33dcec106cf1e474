/** A canvas of points below an SVG of axes and marks, both as large as their place in the page. */

import type { Box } from "./data";
import { html, svg } from "./dom";
import { type Margins, Plane } from "./plane";
import { type Cloud, type Crowd, type Placed, Raster } from "./raster";

const MANY = 100_000; // points, above which fewer are drawn while the picture moves
const MOMENT = 150; // milliseconds
const SHARPEST = 2; // pixels of the canvas per pixel of the page

/** What lies below points: a picture over all that there is to see, and how much points stand out from it (0 to 1). */
export interface Ground {
  picture: HTMLCanvasElement;
  near: number;
}

export interface StageOptions {
  heightOf?: (element: HTMLElement) => number; // where the page gives the height, too
  crowd?: Crowd;
}

export class Stage {
  readonly element = html("div", { class: "stage" });
  readonly canvas = html("canvas", { "aria-hidden": "true" });
  readonly overlay = svg("svg", { class: "overlay", "aria-hidden": "true" });
  private readonly raster: Raster;
  private readonly heightOf: (element: HTMLElement) => number;
  private readonly inner = svg("svg", {});
  private width = 0;
  private height = 0;
  private drawnAt = Number.NEGATIVE_INFINITY;
  private rest = 0; // the timer of the picture that follows the last of those that move

  /** `redraw` is called whenever the place in the page has changed. */
  constructor(
    private readonly margins: Margins,
    private readonly redraw: () => void,
    { heightOf = heightByWidth, crowd }: StageOptions = {},
  ) {
    this.heightOf = heightOf;
    this.raster = new Raster(crowd);
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
    const height = Math.round(this.heightOf(this.element));
    if (!width || (width === this.width && height === this.height)) return false;
    this.width = width;
    this.height = height;
    if (this.heightOf === heightByWidth) this.element.style.height = `${this.height}px`;
    for (const [name, value] of [
      ["width", this.width],
      ["height", this.height],
    ] as const) {
      this.overlay.setAttribute(name, String(value));
    }
    return true;
  }

  /** Points whose steps go from the lower left to the upper right of `all`, seen through the plane's box. */
  points(cloud: Cloud, all: Box, plane: Plane, ground?: Ground): void {
    const context = this.canvas.getContext("2d");
    if (!this.open || !context) return;
    const scale = Math.min(SHARPEST, window.devicePixelRatio || 1);
    const { left, top } = this.margins;
    const [width, height] = [plane.right - left, plane.bottom - top];
    this.resize(Math.round(width * scale), Math.round(height * scale));
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
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
    if (!ground || ground.near > 0) {
      this.raster.draw(context, cloud, placed, scale, ground?.near ?? 1, this.isMoving(cloud));
    }
    if (ground) paint(context, ground, placed);
  }

  /** Whether another picture was drawn a moment ago; if so, a last one follows. Only of so many points that it matters. */
  private isMoving(cloud: Cloud): boolean {
    if (cloud.x.length <= MANY) return false;
    const now = performance.now();
    const isMoving = now - this.drawnAt < MOMENT;
    this.drawnAt = now;
    clearTimeout(this.rest);
    if (isMoving) this.rest = setTimeout(this.redraw, 1.2 * MOMENT);
    return isMoving;
  }

  /** A canvas that keeps its size keeps its memory. */
  private resize(width: number, height: number): void {
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
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

function heightByWidth(element: HTMLElement): number {
  return Math.min(560, Math.max(300, 0.62 * Math.floor(element.clientWidth)));
}

/** Draws a picture below what is there: the part of it that is seen, for all of it may be far larger than the canvas. */
function paint(context: CanvasRenderingContext2D, { picture, near }: Ground, placed: Placed): void {
  const { width, height } = context.canvas;
  const wide = (placed.right - placed.left) / picture.width;
  const high = (placed.bottom - placed.top) / picture.height;
  const [x0, x1] = part(-placed.left / wide, (width - placed.left) / wide, picture.width);
  const [y0, y1] = part(-placed.top / high, (height - placed.top) / high, picture.height);
  if (x1 <= x0 || y1 <= y0) return;
  context.save();
  context.globalCompositeOperation = "destination-over";
  context.globalAlpha = 1 - 0.6 * near;
  context.imageSmoothingEnabled = near === 0;
  context.drawImage(
    picture,
    x0,
    y0,
    x1 - x0,
    y1 - y0,
    placed.left + x0 * wide,
    placed.top + y0 * high,
    (x1 - x0) * wide,
    (y1 - y0) * high,
  );
  context.restore();
}

/** Whole pixels from `low` to `high`, and one more on either side. */
function part(low: number, high: number, count: number): [number, number] {
  return [Math.max(0, Math.floor(low) - 1), Math.min(count, Math.ceil(high) + 1)];
}
