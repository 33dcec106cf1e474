/**
 * Points by the hundred thousand: one pixel each, whose opacity shows how many points it holds and whose colour is their
 * mean. Where a pixel lies is computed once for a view, so that a change of colours costs one pass over the points.
 */

import { FAINTEST, GREY, STRONGEST } from "./density";
import { BEHIND, type Cloud, type Crowd, HIDDEN, type Placed, side } from "./raster";

const LEVELS = 4096; // counts that are distinguished
const BEHIND_OPACITY = [0.1, 0.34]; // of one point of the background, and of many

export class PixelDensity implements Crowd {
  inside = 0; // number of points within the picture
  private at = new Int32Array(0); // pixel of each point; -1 if outside
  private key: unknown[] = [];
  private sums = new Int32Array(0); // red, green, blue, count of each pixel
  private behind = new Uint8Array(0);
  private image: ImageData | null = null;

  /** Find the pixel of each point; at once if nothing has changed. */
  locate({ x, y }: Cloud, placed: Placed, width: number, height: number): void {
    const key = [x, y, placed.left, placed.right, placed.top, placed.bottom, width, height];
    if (key.every((value, i) => value === this.key[i])) return;
    this.key = key;
    if (this.at.length !== x.length) this.at = new Int32Array(x.length);
    const ax = (placed.right - placed.left) / 65535;
    const ay = (placed.top - placed.bottom) / 65535;
    const { at } = this;
    let inside = 0;
    for (let i = 0; i < x.length; i++) {
      const [across, up] = [x[i]!, y[i]!];
      const column = Math.floor(placed.left + ax * across);
      const line = Math.floor(placed.bottom + ay * up);
      const isOut = column < 0 || line < 0 || column >= width || line >= height || side(across) || side(up);
      at[i] = isOut ? -1 : line * width + column;
      if (!isOut) inside++;
    }
    this.inside = inside;
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

  private add(color: Uint32Array): void {
    const { at, sums, behind } = this;
    for (let i = 0; i < at.length; i++) {
      const pixel = at[i]!;
      const rgb = color[i]!;
      if (pixel < 0 || rgb === HIDDEN) continue;
      if (rgb === BEHIND) {
        if (behind[pixel]! < 255) behind[pixel]!++;
        continue;
      }
      const place = 4 * pixel;
      sums[place]! += rgb >> 16;
      sums[place + 1]! += (rgb >> 8) & 255;
      sums[place + 2]! += rgb & 255;
      sums[place + 3]! += 1;
    }
  }

  private resolve(pixels: Uint32Array): void {
    const { sums, behind } = this;
    const opacity = opacities(sums);
    for (let pixel = 0, place = 0; pixel < pixels.length; pixel++, place += 4) {
      const count = sums[place + 3]!;
      if (count) {
        const alpha = opacity[count < LEVELS ? count : LEVELS - 1]!;
        const [red, green, blue] = [sums[place]! / count, sums[place + 1]! / count, sums[place + 2]! / count];
        pixels[pixel] = (alpha << 24) | (blue << 16) | (green << 8) | red;
      } else {
        pixels[pixel] = behind[pixel] ? (BACKGROUND[behind[pixel]!]! << 24) | TURNED_GREY : 0;
      }
    }
  }
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
