/**
 * Points as pixels. Where discs overlap, the colour is their mean and the opacity that of all of them one over the
 * other, so that the order of the rows does not show; coterie/web/png.py does the same.
 */

import { STEPS } from "./data";
import { GREY } from "./density";

export const HIDDEN = 0xffffffff;
export const BEHIND = 0xfffffffe; // colour of points of the background: grey and faint, below all others
const OPACITY = 0.75;
const BEHIND_SHARE = 0.07; // of the opacity of other points
const DISCS = 50_000; // points in sight, above which each is a pixel

/** Rows as steps along two axes, of which the first and the last are beyond the limits, and the colour of each: 0xrrggbb, HIDDEN or BEHIND. */
export interface Cloud {
  x: Uint16Array;
  y: Uint16Array;
  color: Uint32Array;
}

/** Where in the picture, in its pixels, step 0 and the last step lie. */
export interface Placed {
  left: number;
  right: number;
  top: number; // of the last step: y goes up
  bottom: number;
}

/** Draws more points than discs can be drawn in the time of a frame: see pixel_density.ts. */
export interface Crowd {
  inside: number; // points within the picture, once they are located
  locate(cloud: Cloud, placed: Placed, width: number, height: number, isMoving: boolean): void;
  draw(context: CanvasRenderingContext2D, cloud: Cloud): void;
}

export function packed(color: string): number {
  return Number.parseInt(color.slice(1), 16);
}

/** On which side of the limits of an axis a row is: -1 below, 1 above, 0 within. */
export function side(step: number): -1 | 0 | 1 {
  return step === 0 ? -1 : step === STEPS ? 1 : 0;
}

/** The more room points have, the larger they are: `area` is that of all of them, seen or not. */
export function dotRadius(count: number, area: number): number {
  return Math.min(3.5, Math.max(1, 0.18 * Math.sqrt(area / Math.max(count, 1))));
}

export class Raster {
  private light = new Float32Array(0); // red, green, blue and how much of a disc, of each pixel and of a border around

  constructor(private readonly crowd?: Crowd) {}

  /** Draws into the whole of a canvas; `scale` is its pixels per pixel of the page, `share` how opaque points are. */
  draw(
    context: CanvasRenderingContext2D,
    cloud: Cloud,
    placed: Placed,
    scale: number,
    share: number,
    isMoving = false,
  ): void {
    const { width, height } = context.canvas;
    if (this.crowd && cloud.x.length > DISCS) {
      this.crowd.locate(cloud, placed, width, height, isMoving);
      if (this.crowd.inside > DISCS) {
        this.crowd.draw(context, cloud);
        return;
      }
    }
    const area = ((placed.right - placed.left) * (placed.bottom - placed.top)) / scale ** 2;
    const radius = scale * dotRadius(cloud.x.length, area);
    const reach = Math.floor(radius + 0.5);
    const wide = width + 2 * reach;
    const size = 4 * wide * (height + 2 * reach);
    if (this.light.length === size) this.light.fill(0);
    else this.light = new Float32Array(size);
    this.add(cloud, placed, width, height, radius, reach);
    const image = context.createImageData(width, height);
    this.resolve(image, wide, reach, OPACITY * share);
    context.putImageData(image, 0, 0);
  }

  /** Adds the light of all discs. */
  private add(cloud: Cloud, placed: Placed, width: number, height: number, radius: number, reach: number): void {
    const { x, y, color } = cloud;
    const light = this.light;
    const wide = width + 2 * reach;
    const { offsets, shares } = disc(radius, reach, wide);
    const count = offsets.length;
    const ax = (placed.right - placed.left) / STEPS;
    const ay = (placed.top - placed.bottom) / STEPS;
    for (let i = 0; i < x.length; i++) {
      const given = color[i]!;
      if (given === HIDDEN || side(x[i]!) || side(y[i]!)) continue;
      const rgb = given === BEHIND ? GREY : given;
      const weight = given === BEHIND ? BEHIND_SHARE : 1;
      const column = Math.floor(placed.left + ax * x[i]!);
      const line = Math.floor(placed.bottom + ay * y[i]!);
      if (column < 0 || line < 0 || column >= width || line >= height) continue;
      const red = rgb >> 16;
      const green = (rgb >> 8) & 255;
      const blue = rgb & 255;
      const middle = 4 * ((line + reach) * wide + column + reach);
      for (let j = 0; j < count; j++) {
        const place = middle + offsets[j]!;
        const share = weight * shares[j]!;
        light[place]! += share * red;
        light[place + 1]! += share * green;
        light[place + 2]! += share * blue;
        light[place + 3]! += share;
      }
    }
  }

  /** Light as pixels. */
  private resolve(image: ImageData, wide: number, reach: number, opacity: number): void {
    const { width, height, data } = image;
    const light = this.light;
    const clear = Math.log(1 - opacity);
    for (let line = 0; line < height; line++) {
      let from = 4 * ((line + reach) * wide + reach);
      let to = 4 * line * width;
      for (let column = 0; column < width; column++, from += 4, to += 4) {
        const covered = light[from + 3]!;
        if (covered === 0) continue;
        data[to] = light[from]! / covered;
        data[to + 1] = light[from + 1]! / covered;
        data[to + 2] = light[from + 2]! / covered;
        data[to + 3] = 255 * (1 - Math.exp(clear * covered));
      }
    }
  }
}

/** Places of a disc's pixels from its middle, and how much of each it covers. */
function disc(radius: number, reach: number, wide: number): { offsets: Int32Array; shares: Float32Array } {
  const offsets: number[] = [];
  const shares: number[] = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const share = Math.min(1, radius + 0.5 - Math.hypot(dx, dy));
      if (share > 0) {
        offsets.push(4 * (dy * wide + dx));
        shares.push(share);
      }
    }
  }
  return { offsets: Int32Array.from(offsets), shares: Float32Array.from(shares) };
}
