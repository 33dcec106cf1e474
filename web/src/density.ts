/**
 * How dense rows lie: the counts of each cluster in the cells of a grid, as colours. Hue says which cluster, opacity how
 * many rows; coterie/web/density.py does the same.
 */

import { counts, type GridData } from "./data";
import { html } from "./dom";
import { HIDDEN } from "./raster";

export const FAINTEST = 0.45; // opacity of a cell with one row
export const STRONGEST = 0.995; // of the cells have fewer rows than those of full opacity
export const GREY = 0x9aa1ab; // rows in no cluster, or not yet in one
const GAMMA = 2.2;
const LEAD = 4; // power of the shares by which clusters are mixed

export class Density {
  private readonly size: number;

  constructor(
    readonly up: number, // cells
    readonly across: number,
    private readonly counts: Map<number, number>, // cluster by cluster, row by row from below
  ) {
    this.size = up * across;
  }

  static read({ shape: [up, across], counts: text }: GridData): Density {
    return new Density(up, across, counts(text));
  }

  /** The same rows in cells so many times as high and as wide, both of which divide those there are. */
  merged(up: number, across: number): Density {
    if (up === 1 && across === 1) return this;
    const [high, wide] = [this.up / up, this.across / across];
    const sums = new Map<number, number>();
    this.counts.forEach((count, key) => {
      const at = key % this.size;
      const line = Math.floor(key / this.size) * high + Math.floor(Math.floor(at / this.across) / up);
      const place = line * wide + Math.floor((at % this.across) / across);
      sums.set(place, (sums.get(place) ?? 0) + count);
    });
    return new Density(high, wide, sums);
  }

  /** One pixel a cell, of clusters in these colours, 0xrrggbb or HIDDEN; `turned`: what goes across is up. */
  picture(colors: number[], turned: boolean): HTMLCanvasElement {
    const [width, height] = turned ? [this.up, this.across] : [this.across, this.up];
    const canvas = html("canvas", { width, height });
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    const image = context.createImageData(width, height);
    const total = this.total(colors);
    const light = this.light(colors, total);
    const full = Math.log(Math.max(2, strong(total)));
    for (let at = 0; at < total.length; at++) {
      const rows = total[at]!;
      if (!rows) continue;
      const [i, j] = [at % this.across, Math.floor(at / this.across)];
      const to = 4 * (turned ? (height - 1 - i) * width + j : (height - 1 - j) * width + i);
      const mass = light[4 * at + 3]!;
      for (let c = 0; c < 3; c++) image.data[to + c] = 255 * (light[4 * at + c]! / mass) ** (1 / GAMMA);
      image.data[to + 3] = 255 * (FAINTEST + (1 - FAINTEST) * Math.min(1, Math.log(rows) / full));
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  private total(colors: number[]): Float64Array {
    const total = new Float64Array(this.size);
    this.counts.forEach((count, key) => {
      if (colors[Math.floor(key / this.size)] !== HIDDEN) total[key % this.size]! += count;
    });
    return total;
  }

  /** Red, green, blue and how much of them there is. */
  private light(colors: number[], total: Float64Array): Float64Array {
    const table = colors.map((rgb) => [rgb >> 16, (rgb >> 8) & 255, rgb & 255].map((code) => (code / 255) ** GAMMA));
    const light = new Float64Array(4 * this.size);
    this.counts.forEach((count, key) => {
      const cluster = Math.floor(key / this.size);
      if (colors[cluster] === HIDDEN) return;
      const at = key % this.size;
      const weight = (count / total[at]!) ** LEAD;
      for (let c = 0; c < 3; c++) light[4 * at + c]! += weight * table[cluster]![c]!;
      light[4 * at + 3]! += weight;
    });
    return light;
  }
}

/** The rows of a cell of full opacity. */
function strong(total: Float64Array): number {
  const found = total.filter((rows) => rows > 0).sort();
  return found[Math.floor(STRONGEST * (found.length - 1))] ?? 1;
}
