/** What Python writes into the page: see coterie/web/packing.py. */

export interface AxisData {
  name: string;
  low: number;
  high: number;
  values: string; // base64, uint16 a row: steps from low to high; the first and the last are beyond them
}

/** How many rows of each cluster lie where, along two axes. */
export interface GridData {
  axes: [number, number];
  shape: [number, number]; // cells up and across
  counts: string;
}

export interface MapData {
  kind: "map";
  axes: AxisData[];
  start: [number, number];
  labels: string;
  names: string[];
  colors: string[];
  noise: string | null; // colour of rows in no cluster, if there are any
  rows: number;
  shown: number;
  centers: number[][] | null; // (k, p)
  spreads: number[][] | null; // (k, p (p + 1) / 2): upper triangles, row by row
  deviations: number;
  grids: GridData[]; // of all rows, where they are too many to draw
  beyond: number[][]; // (p, p): rows beyond the limits of either of two axes
  title: string | null; // in place of names and ticks of axes that have no unit
}

/** Centre, half axes and angle of an ellipse. */
export type Ellipse = [number, number, number, number, number];

export interface Frame {
  step: string;
  iteration: number;
  caption: string;
  labels: string | null; // null: as in the frame before
  rgb: string | null;
  centers: [number, number][];
  ellipses: (Ellipse | null)[] | null;
  sizes: number[];
  objective: number | null;
  bound: number | null;
}

export interface PlayerData {
  kind: "player";
  title: string;
  axes: string[];
  box: Box;
  rows: number;
  shown: number;
  points: string;
  colors: string[];
  names: string[];
  soft: boolean;
  objective: { name: string; better: "lower" | "higher" };
  frames: Frame[];
}

/** A fit to play: what PlayerData says, with arrays in place of text. */
export interface Film extends Omit<PlayerData, "kind" | "points" | "frames"> {
  x: Uint16Array;
  y: Uint16Array;
  frames: FilmFrame[];
}

export interface FilmFrame extends Omit<Frame, "labels" | "rgb"> {
  labels: Uint8Array | Uint16Array | null; // null: as in the frame before
  rgb: Uint8Array | null;
}

export function film(data: PlayerData): Film {
  const pairs = words(data.points);
  const half = (from: number) => Uint16Array.from({ length: pairs.length >> 1 }, (_, i) => pairs[2 * i + from]!);
  const frames = data.frames.map((frame) => ({
    ...frame,
    labels: frame.labels === null ? null : labels(frame.labels, data.names.length),
    rgb: frame.rgb === null ? null : bytes(frame.rgb),
  }));
  return { ...data, x: half(0), y: half(1), frames };
}

/** x0, x1, y0, y1 */
export type Box = [number, number, number, number];

export const STEPS = 65535;

export function read<T>(id: string): T {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error(`no data "${id}" in this page`);
  return JSON.parse(text) as T;
}

export function bytes(text: string): Uint8Array {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

/** Little-endian, whatever the machine is. */
export function words(text: string): Uint16Array {
  const raw = bytes(text);
  const out = new Uint16Array(raw.length >> 1);
  for (let i = 0; i < out.length; i++) out[i] = raw[2 * i]! | (raw[2 * i + 1]! << 8);
  return out;
}

/** Labels of `k` clusters; rows in none have label `k`. */
export function labels(text: string, k: number): Uint16Array {
  const given = k < 255 ? bytes(text) : words(text);
  return Uint16Array.from(given, (label) => Math.min(label, k));
}

/** Counts by place: 7 bits a byte, one place after the other, and 0 before a number of places without any. */
export function counts(text: string): Map<number, number> {
  const raw = bytes(text);
  const found = new Map<number, number>();
  let i = 0;
  const next = () => {
    let [number, unit] = [0, 1];
    for (; raw[i]! > 127; i++, unit *= 128) number += unit * (raw[i]! & 127);
    return number + unit * raw[i++]!;
  };
  for (let place = 0; i < raw.length; place++) {
    let count = next();
    if (!count) {
      place += next();
      count = next();
    }
    found.set(place, count);
  }
  return found;
}
