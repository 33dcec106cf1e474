/**
 * Points by the hundred thousand: one pixel each, whose opacity shows how many points it holds and whose colour is their
 * mean. Points are visited in the order of a coarse grid over the plane, so that their pixels are near each other in
 * memory, and the pixel of each is computed once for a view: a change of colours costs one pass over the points.
 */

import { STEPS } from "./data";
import { FAINTEST, GREY, STRONGEST } from "./density";
import { BEHIND, type Cloud, type Crowd, type Placed, side } from "./raster";

const LEVELS = 4096; // counts that are distinguished
const BEHIND_OPACITY = [0.1, 0.34]; // of one point of the background, and of many

export class PixelDensity implements Crowd {
  inside = 0; // number of points within the picture
  private x = new Uint16Array(0); // of the points, in the order of the grid
  private y = new Uint16Array(0);
  private order = new Int32Array(0); // which point is which
  private of: Uint16Array | null = null; // the points that were ordered
  private at = new Int32Array(0); // pixel of each point; -1 if outside
  private key: unknown[] = [];
  private sums = new Int32Array(0); // red, green, blue, count of each pixel
  private behind = new Uint8Array(0);
  private image: ImageData | null = null;

  /** Find the pixel of each point; at once if nothing has changed. */
  locate(cloud: Cloud, placed: Placed, width: number, height: number): void {
    const key = [cloud.x, cloud.y, placed.left, placed.right, placed.top, placed.bottom, width, height];
    if (key.every((value, i) => value === this.key[i])) return;
    this.key = key;
    if (this.of !== cloud.x) this.sort(cloud);
    const ax = (placed.right - placed.left) / STEPS;
    const ay = (placed.top - placed.bottom) / STEPS;
    const { at, x, y } = this;
    let inside = 0;
    for (let i = 0; i < x.length; i++) {
      const across = x[i]!;
      const up = y[i]!;
      const column = Math.floor(placed.left + ax * across);
      const line = Math.floor(placed.bottom + ay * up);
      const isOut = column < 0 || line < 0 || column >= width || line >= height || side(across) || side(up);
      at[i] = isOut ? -1 : line * width + column;
      if (!isOut) inside++;
    }
    this.inside = inside;
  }

  /** Order the points by the cells of a grid of 256 by 256, from the top: a counting sort. */
  private sort({ x, y }: Cloud): void {
    const count = x.length;
    const first = new Uint32Array(65537);
    for (let i = 0; i < count; i++) first[cell(x[i]!, y[i]!) + 1]!++;
    for (let j = 0; j < 65536; j++) first[j + 1]! += first[j]!;
    this.order = new Int32Array(count);
    this.x = new Uint16Array(count);
    this.y = new Uint16Array(count);
    this.at = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      const to = first[cell(x[i]!, y[i]!)]!++;
      this.order[to] = i;
      this.x[to] = x[i]!;
      this.y[to] = y[i]!;
    }
    this.of = x;
  }

  draw(context: CanvasRenderingContext2D, { color }: Cloud): void {
    const { width, height } = context.canvas;
    const size = width * height;
    if (this.behind.length === size) {
      this.sums.fill(0);
      this.behind.fill(0);
    } else {
      this.sums = new Int32Array(4 * size);
      this.behind = new Uint8Array(size);
      this.image = null;
    }
    this.image ??= context.createImageData(width, height);
    this.add(color);
    this.resolve(new Uint32Array(this.image.data.buffer));
    context.putImageData(this.image, 0, 0);
  }

  /** Colours are read as signed integers, which are faster than unsigned ones that may not fit into 31 bits. */
  private add(color: Uint32Array): void {
    const { at, order, sums, behind } = this;
    const signed = new Int32Array(color.buffer, color.byteOffset, color.length);
    const background = BEHIND | 0;
    for (let i = 0; i < at.length; i++) {
      const pixel = at[i]!;
      if (pixel < 0) continue;
      const rgb = signed[order[i]!]!;
      if (rgb >= 0) {
        const place = pixel << 2;
        sums[place] = sums[place]! + (rgb >> 16);
        sums[place + 1] = sums[place + 1]! + ((rgb >> 8) & 255);
        sums[place + 2] = sums[place + 2]! + (rgb & 255);
        sums[place + 3] = sums[place + 3]! + 1;
      } else if (rgb === background && behind[pixel]! < 255) {
        behind[pixel] = behind[pixel]! + 1;
      }
    }
  }

  private resolve(pixels: Uint32Array): void {
    const { sums, behind } = this;
    const opacity = opacities(sums);
    for (let pixel = 0, place = 0; pixel < pixels.length; pixel++, place += 4) {
      const count = sums[place + 3]!;
      if (count) {
        const alpha = opacity[count < LEVELS ? count : LEVELS - 1]!;
        const share = 1 / count;
        const [red, green, blue] = [share * sums[place]!, share * sums[place + 1]!, share * sums[place + 2]!];
        pixels[pixel] = (alpha << 24) | (blue << 16) | (green << 8) | red;
      } else {
        pixels[pixel] = behind[pixel] ? (BACKGROUND[behind[pixel]!]! << 24) | TURNED_GREY : 0;
      }
    }
  }
}

function cell(x: number, y: number): number {
  return (255 - (y >> 8)) * 256 + (x >> 8);
}

const TURNED_GREY = ((GREY & 255) << 16) | (GREY & 0xff00) | (GREY >> 16);
const BACKGROUND = Uint8Array.from({ length: 256 }, (_, count) => {
  const [least, most] = BEHIND_OPACITY as [number, number];
  return 255 * (least + (most - least) * Math.min(1, Math.log2(1 + count) / 5));
});

/** Opacity by count, linear in its logarithm, and full for the densest pixels. */
function opacities(sums: Int32Array): Uint8Array {
  const found = new Uint32Array(LEVELS);
  let used = 0;
  for (let place = 3; place < sums.length; place += 4) {
    const count = sums[place]!;
    if (!count) continue;
    found[count < LEVELS ? count : LEVELS - 1]!++;
    used++;
  }
  let full = 1;
  for (let rest = STRONGEST * used - found[1]!; rest > 0 && full < LEVELS - 1; rest -= found[full]!) full++;
  const top = Math.log(Math.max(4, full));
  return Uint8Array.from({ length: LEVELS }, (_, count) => {
    return 255 * (FAINTEST + (1 - FAINTEST) * Math.min(1, Math.log(Math.max(1, count)) / top));
  });
}
