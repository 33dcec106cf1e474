/**
 * Points by the hundred thousand: one pixel each, whose opacity shows how many points it holds and whose colour is their
 * mean. Points are visited in the order of a coarse grid over the plane, so that their pixels are near each other in
 * memory, and the pixel of each is computed once for a view: a change of colours costs one pass over the points. The grid
 * is passed over several times, each time with some of its points, so that the first of them are an even sample of all: it
 * is what is drawn while the picture moves.
 */

import { STEPS } from "./data";
import { FAINTEST, GREY, STRONGEST } from "./density";
import { BEHIND, type Cloud, type Crowd, type Placed } from "./raster";

const LEVELS = 4096; // counts that are distinguished
const BLOCK = 4096;
const MOVING = 300_000; // points that are drawn while the picture moves
const BACKGROUND_RGB = BEHIND | 0;
const BEHIND_OPACITY = [0.1, 0.34]; // of one point of the background, and of many

export class PixelDensity implements Crowd {
  inside = 0; // number of points within the picture
  private drawn = 0; // number of points that are drawn
  private x = new Uint16Array(0); // of the points, in the order of the grid
  private y = new Uint16Array(0);
  private order = new Int32Array(0); // which point is which
  private of: Uint16Array | null = null; // the points that were ordered
  private at = new Int32Array(0); // pixel of each point; -1 if outside
  private readonly block = new Int32Array(BLOCK); // colours that are added next
  private key: unknown[] = [];
  private sums = new Int32Array(0); // red, green, blue, count of each pixel
  private behind = new Uint8Array(0);
  private image: ImageData | null = null;

  /** Find the pixel of each point; at once if nothing has changed. */
  locate(cloud: Cloud, placed: Placed, width: number, height: number, isMoving: boolean): void {
    const total = cloud.x.length;
    this.drawn = isMoving ? Math.min(total, MOVING) : total;
    const key = [cloud.x, cloud.y, placed.left, placed.right, placed.top, placed.bottom, width, height, this.drawn];
    if (key.every((value, i) => value === this.key[i])) return;
    this.key = key;
    if (this.of !== cloud.x) this.sort(cloud);
    const columns = places(placed.left, placed.right, width, 1);
    const lines = places(placed.bottom, placed.top, height, width);
    let inside = 0;
    for (let start = 0; start < this.drawn; start += BLOCK) {
      inside += locateBlock(this.x, this.y, columns, lines, this.at, start, Math.min(this.drawn, start + BLOCK));
    }
    this.inside = (inside * total) / Math.max(1, this.drawn);
  }

  /** Order the points by the cells of a grid of 256 by 256, from the top: a counting sort, then pass by pass. */
  private sort({ x, y }: Cloud): void {
    const count = x.length;
    const first = new Uint32Array(65537);
    for (let i = 0; i < count; i++) first[cell(x[i]!, y[i]!) + 1]!++;
    for (let j = 0; j < 65536; j++) first[j + 1]! += first[j]!;
    const sorted = new Int32Array(count);
    for (let i = 0; i < count; i++) sorted[first[cell(x[i]!, y[i]!)]!++] = i;
    this.order = new Int32Array(count);
    this.x = new Uint16Array(count);
    this.y = new Uint16Array(count);
    this.at = new Int32Array(count);
    const passes = Math.ceil(count / MOVING);
    for (let pass = 0, to = 0; pass < passes; pass++) {
      for (let j = pass; j < count; j += passes, to++) {
        const i = sorted[j]!;
        this.order[to] = i;
        this.x[to] = x[i]!;
        this.y[to] = y[i]!;
      }
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

  private add(color: Uint32Array): void {
    const signed = new Int32Array(color.buffer, color.byteOffset, color.length);
    for (let start = 0; start < this.drawn; start += BLOCK) {
      const count = Math.min(this.drawn - start, BLOCK);
      gather(signed, this.order, this.block, start, count);
      addBlock(this.at, this.block, this.sums, this.behind, start, count);
    }
  }

  private resolve(pixels: Uint32Array): void {
    const opacity = opacities(this.sums);
    for (let start = 0; start < pixels.length; start += BLOCK) {
      resolveBlock(this.sums, this.behind, opacity, pixels, start);
    }
  }
}

/*
 * The loops over points and pixels. Each takes a block of them and is called for every block of a frame, so that the
 * browser compiles it soon: one long loop would be compiled anew in the middle of every frame.
 */

/** Pixels of a block of points; returns how many lie within the picture. */
function locateBlock(
  x: Uint16Array,
  y: Uint16Array,
  columns: Int32Array,
  lines: Int32Array,
  at: Int32Array,
  start: number,
  end: number,
): number {
  let inside = 0;
  for (let i = start; i < end; i++) {
    const column = columns[x[i]!]!;
    const line = lines[y[i]!]!;
    const isOut = column < 0 || line < 0;
    at[i] = isOut ? -1 : line + column;
    if (!isOut) inside++;
  }
  return inside;
}

/**
 * Colours of a block of points. They are read before they are added, because reads from anywhere in memory overlap only
 * if no writes are between them, and as signed integers, because unsigned ones may not fit into 31 bits.
 */
function gather(color: Int32Array, order: Int32Array, block: Int32Array, start: number, count: number): void {
  for (let j = 0; j < count; j++) block[j] = color[order[start + j]!]!;
}

function addBlock(
  at: Int32Array,
  block: Int32Array,
  sums: Int32Array,
  behind: Uint8Array,
  start: number,
  count: number,
): void {
  for (let j = 0; j < count; j++) {
    const pixel = at[start + j]!;
    const rgb = block[j]!;
    if (pixel < 0) continue;
    if (rgb >= 0) {
      const place = pixel << 2;
      sums[place] = sums[place]! + (rgb >> 16);
      sums[place + 1] = sums[place + 1]! + ((rgb >> 8) & 255);
      sums[place + 2] = sums[place + 2]! + (rgb & 255);
      sums[place + 3] = sums[place + 3]! + 1;
    } else if (rgb === BACKGROUND_RGB && behind[pixel]! < 255) {
      behind[pixel] = behind[pixel]! + 1;
    }
  }
}

function resolveBlock(
  sums: Int32Array,
  behind: Uint8Array,
  opacity: Uint8Array,
  pixels: Uint32Array,
  start: number,
): void {
  const end = Math.min(pixels.length, start + BLOCK);
  for (let pixel = start; pixel < end; pixel++) {
    const place = pixel << 2;
    const count = sums[place + 3]!;
    if (count) {
      const alpha = opacity[count < LEVELS ? count : LEVELS - 1]!;
      const share = 1 / count;
      const red = share * sums[place]!;
      const green = share * sums[place + 1]!;
      const blue = share * sums[place + 2]!;
      pixels[pixel] = (alpha << 24) | (blue << 16) | (green << 8) | red;
    } else {
      pixels[pixel] = behind[pixel] ? (BACKGROUND[behind[pixel]!]! << 24) | TURNED_GREY : 0;
    }
  }
}

/** For each step along an axis, its pixel between two ends, times `unit`; -1 outside of the picture. */
function places(first: number, last: number, size: number, unit: number): Int32Array {
  const found = new Int32Array(STEPS + 1).fill(-1);
  const scale = (last - first) / STEPS;
  for (let step = 1; step < STEPS; step++) {
    const pixel = Math.floor(first + scale * step);
    if (pixel >= 0 && pixel < size) found[step] = unit * pixel;
  }
  return found;
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
