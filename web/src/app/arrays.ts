/** Arrays of the displayed rows: where they lie on maps, their clusters and their values, each loaded once. */

import type { Box, Film, FilmFrame } from "../data";
import { type Blobs, blob, query, type Run, type Value } from "./api";
import { ofTable } from "./state";

export interface MapHeader {
  kind: string;
  m: number;
  axes: string[];
  box: Box;
  share: number | null;
  note: string;
  title: string | null;
  beyond: number;
  missing: number;
  key: string;
}

export interface Points {
  header: MapHeader;
  x: Uint16Array;
  y: Uint16Array;
  rows: Uint32Array | null; // row numbers, where the displayed rows are a sample
}

export interface Labels {
  labels: Uint8Array | Uint16Array;
  silhouettes: Int8Array | null; // hundredths; UNKNOWN where it was not computed
  names: string[];
  colors: string[];
}

export interface Coded {
  name: string;
  codes: Uint8Array;
  bounds: Value[] | null; // of the bins of numbers and dates
  labels: string[] | null; // of categories
}

export const UNKNOWN = -128;
export const MISSING = 255;

const NOWHERE = 65535;
const answers = ofTable(() => new Map<string, Promise<unknown>>());
const MOST = 24;

/** Keep the last answers; what fails is asked for again the next time. */
function once<T>(key: string, load: () => Promise<T>): Promise<T> {
  const kept = answers.peek(); // an answer that fails late must not remove one of another table
  const known = kept.get(key) as Promise<T> | undefined;
  if (known) return known;
  const made = load();
  kept.set(key, made);
  made.catch(() => kept.delete(key));
  if (kept.size > MOST) kept.delete(kept.keys().next().value!);
  return made;
}

/** `key` names the preparation of the rows: the present one, or that of a run. */
export function loadMap(
  key: string,
  kind: string,
  x: string | null = null,
  y: string | null = null,
  run: Run | null = null,
): Promise<Points> {
  const asked = query({ kind, x: kind === "columns" ? x : null, y: kind === "columns" ? y : null });
  return once(`map ${key} ${asked}`, async () => {
    const points = placed(await blob<MapHeader>(`/api/map?${asked}&${query({ run: run?.id })}`));
    if (points.header.key !== key) throw new Error("The preparation has changed meanwhile.");
    return points;
  });
}

function placed({ header, arrays }: Blobs<MapHeader>): Points {
  const [x, y] = [arrays.x as Uint16Array, arrays.y as Uint16Array];
  const rows = (arrays.rows as Uint32Array | undefined) ?? null;
  const positions = arrays.positions as Uint32Array | undefined;
  if (!positions) return { header, x, y, rows };
  const [wideX, wideY] = [new Uint16Array(header.m).fill(NOWHERE), new Uint16Array(header.m).fill(NOWHERE)];
  positions.forEach((position, i) => {
    wideX[position] = x[i]!;
    wideY[position] = y[i]!;
  });
  return { header, x: wideX, y: wideY, rows };
}

export function loadLabels(run: Run, k: number | null = null): Promise<Labels> {
  const asked = k === null ? "" : `?k=${k}`;
  return once(`labels ${run.id} ${run.status} ${run.sizes.length} ${asked}`, async () => {
    const { header, arrays } = await blob<{ names?: string[]; colors?: string[] }>(
      `/api/runs/${run.id}/labels${asked}`,
    );
    return {
      labels: arrays.labels as Uint8Array | Uint16Array,
      silhouettes: (arrays.silhouettes as Int8Array | undefined) ?? null,
      names: header.names ?? run.names,
      colors: header.colors ?? run.colors,
    };
  });
}

interface ValuesHeader {
  columns: { name: string; kind: string; bounds?: Value[]; labels?: string[] }[];
}

export function loadValues(column: string): Promise<Coded> {
  return once(`values ${column}`, async () => {
    const { header, arrays } = await blob<ValuesHeader>(`/api/values?${query({ columns: [column] })}`);
    const { name, bounds, labels } = header.columns[0]!;
    return { name, codes: arrays.c0 as Uint8Array, bounds: bounds ?? null, labels: labels ?? null };
  });
}

interface TraceHeader {
  title: string;
  axes: string[];
  objective: Film["objective"];
  soft: boolean;
  m: number;
  frames: (Omit<FilmFrame, "labels" | "rgb"> & { labels: number })[];
}

/** The film of a run: its frames over the map of principal axes. */
export async function loadFilm(run: Run, rows: number): Promise<Film> {
  const [{ header, arrays }, points] = await Promise.all([
    blob<TraceHeader>(`/api/runs/${run.id}/trace`),
    loadMap(run.key, "axes", null, null, run),
  ]);
  const { m, soft } = header;
  const slice = (frame: number): Uint8Array | Uint16Array | null => {
    if (frame < 0) return null;
    const all = (soft ? arrays.rgb : arrays.labels) as Uint8Array | Uint16Array;
    const size = soft ? 3 * m : m;
    return all.subarray(frame * size, (frame + 1) * size);
  };
  const frames = header.frames.map((frame): FilmFrame => {
    const data = slice(frame.labels);
    return { ...frame, labels: soft ? null : data, rgb: soft ? (data as Uint8Array | null) : null };
  });
  const { title, objective } = header;
  const { box, axes } = points.header;
  const { names, colors } = run;
  return { title, axes, box, rows, shown: m, x: points.x, y: points.y, names, colors, soft, objective, frames };
}
