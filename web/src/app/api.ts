/** Requests to the server, their answers, and events: see coterie/app. */

export interface Fault {
  message: string;
  field: string | null; // the control that caused it
}

/** A number, or a date (ISO 8601). */
export type Value = number | string;

export type Histogram = { counts: number[]; low: Value; high: Value } | { counts: number[]; labels: string[] };

export type Role = "feature" | "id" | "weight" | "ignored";

export interface Column {
  name: string;
  kind: string;
  missing: number;
  distinct: number | null;
  min: Value | null;
  mean: Value | null;
  max: Value | null;
  histogram: Histogram | null;
  examples: string[];
  role: Role;
  reason: string | null;
  reading: string | null;
  as: string | null;
  transform: string;
  transform_auto: boolean;
  choices: { roles: Role[]; as: string[]; transforms: string[] };
}

export interface Table {
  id: string; // of this opening of the table
  name: string;
  path: string | null;
  rows: number;
  bytes: number;
  notes: string[];
  displayed: number;
  columns: Column[];
}

export interface Preparation {
  scale: string;
  missing: string;
  dates: string;
  decimal: string;
  choices: Record<string, string[]>;
  scale_used: string;
  rows_used: number;
  rows_dropped: number;
  dimensions: number;
  notes: string[];
  warnings: string[];
  error: Fault | null;
  key: string;
}

export interface Option {
  name: string;
  title: string;
  type: "int" | "float" | "choice" | "text";
  default: string | number | boolean | null;
  choices: string[] | null;
  min: number | null;
  max: number | null;
  help: string;
}

export interface Algorithm {
  name: string;
  title: string;
  summary: string;
  takes_k: boolean;
  finds_k: boolean;
  watch: boolean;
  tree: boolean;
  suited: string | null;
  options: Option[];
}

export interface Progress {
  stage: string;
  done: number | null;
  total: number | null;
  left: number | null;
}

export interface Run {
  id: string;
  kind: "fit" | "choose" | "cut" | "merge" | "open";
  title: string;
  algorithm: string;
  k: number | null;
  k_requested: number | "auto" | [number, number] | null;
  seconds: number | null;
  status: "queued" | "running" | "done" | "failed" | "cancelled";
  stopped: boolean;
  error: Fault | null;
  progress: Progress | null;
  scores: Record<string, number>;
  silhouette: number | null;
  noise: number | null;
  sizes: number[];
  names: string[];
  colors: string[];
  parent: string | null;
  key: string;
  watch: boolean;
  tree: boolean;
  choice: { recommended: number; strength: string; heading: string } | null;
  converged: boolean | null;
  iterations: number | null;
  current_preparation: boolean;
}

/** Changes whenever a view of the run does: it is another run, or clusters have other names or colours. */
export function editionOf(run: Run): string {
  return JSON.stringify([run.id, run.names, run.colors]);
}

export interface Workspace {
  version: string;
  revision: number;
  ready: boolean;
  busy: string | null;
  table: Table | null;
  preparation: Preparation | null;
  algorithms: Algorithm[];
  budgets: string[];
  runs: Run[];
  current: string | null;
  can_undo: string | null;
  can_redo: string | null;
  recent: { id: string; name: string; rows: number; runs: number; when: string; exists: boolean }[];
  demos: { name: string; about: string }[];
  folder: string[];
  problem: Fault | null; // why the first table could not be opened
}

interface Rule {
  text: string;
  precision: number;
  coverage: number;
}

interface Contrast {
  column: string;
  deviation: number | null;
  share: number | null;
  overall: number | null;
}

export interface Cluster {
  label: number;
  name: string;
  color: string;
  rows: number;
  share: number;
  silhouette: number | null;
  rule: Rule | null;
  stands_out_by: Contrast[];
}

export interface Choice {
  recommended: number;
  strength: string;
  heading: string;
  reason: string;
  votes: {
    criterion: string;
    k: number | null;
    confidence: number | null;
    weight: number | null;
    note: string | null;
  }[];
  table: ({ k: number } & Record<string, number | null>)[];
  ks: number[];
  criteria?: CriterionEvent[];
}

export interface Result extends Run {
  heading: string;
  notes: string[];
  warnings: string[];
  rows_used: number;
  columns: string[];
  clusters: Cluster[];
  choice: (Choice & { recommended: number }) | null;
}

export interface Row {
  row: number;
  cells: (string | null)[];
  cluster: number | null;
  distance: number | null;
  probability: number | null;
  silhouette: number | null;
}

export interface Rows {
  total: number;
  columns: string[];
  rows: Row[];
}

export type Distribution =
  | { column: string; low: Value; high: Value; cluster: number[]; rest: number[] }
  | { column: string; labels: string[]; cluster: number[]; rest: number[] };

export interface ClusterDetail extends Cluster {
  distributions: Distribution[];
  typical: Rows;
  untypical: Rows;
}

/** Of a column, or of one of its categories, in the selected rows. */
export interface SelectedMean {
  column: string;
  value?: string; // the category
  kind: "number" | "share" | "date";
  mean: Value | null;
  overall: Value | null;
  deviation: number | null;
  missing: number; // values of the selected rows
}

export interface Tree {
  x: number[][];
  y: number[][];
  names: string[];
  sizes: number[];
  heights: number[];
  k_now: number;
  height_now: number;
  max: number;
}

export interface Comparison {
  adjusted_rand: number;
  adjusted_mutual_information: number;
  agreement: number;
  moved: number;
  rows: number;
  table: number[][];
  before: number[];
  after: number[];
  matching: Record<string, number>;
  moved_rows: number[];
}

export interface CriterionEvent {
  run: string;
  criterion: string;
  name: string;
  k: number | null;
  ks: number[];
  values: (number | null)[];
  note: string | null;
}

export interface StepEvent {
  run: string;
  restart: number;
  iteration: number;
  objective: number | null;
  history: number[];
  centers: [number, number][] | null;
}

/** An answer that the server gives in place of what was asked for. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly field: string | null,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The server does not answer at all. */
export class Unreachable extends Error {}

let tableShown: string | null = null;

/** Name the table that the page shows: the server rejects requests about another one. */
export function askAbout(table: string | null): void {
  tableShown = table;
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const about = tableShown === null ? {} : { "X-Coterie-Table": tableShown };
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { "X-Coterie": "1", ...about, ...init.headers } });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Unreachable(String(error));
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as { error?: Fault } | null;
  const message = body?.error?.message ?? `The server answered with status ${response.status}.`;
  throw new Refusal(message, body?.error?.field ?? null, response.status);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, signal ? { signal } : {})).json() as Promise<T>;
}

export async function text(path: string): Promise<string> {
  return (await request(path)).text();
}

/** A file to save, with its name. Errors name no control, so that they appear beside the one that saves. */
export async function file(path: string): Promise<{ name: string | null; content: Blob }> {
  const response = await request(path).catch((error) => {
    throw error instanceof Refusal ? new Refusal(error.message, null, error.status) : error;
  });
  const name = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? null;
  return { name, content: await response.blob() };
}

export async function send<T>(method: "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  return (await request(path, init)).json() as Promise<T>;
}

export async function upload<T>(path: string, body: Blob | Uint8Array<ArrayBuffer>): Promise<T> {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await request(path, { method: "POST", body, headers })).json() as Promise<T>;
}

export function query(parameters: Record<string, string | number | string[] | null | undefined>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) given.append(name, String(one));
  }
  return given.toString();
}

const VIEWS = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array } as const;

export type Packed = Uint8Array | Int8Array | Uint16Array | Uint32Array | Float32Array;

/** A header of JSON and arrays that are views of the answer: nothing is copied. */
export interface Blobs<H> {
  header: H;
  arrays: Record<string, Packed>;
}

interface ArrayPlace {
  name: string;
  dtype: keyof typeof VIEWS;
  shape: number[];
  offset: number;
}

export async function blob<H>(path: string, signal?: AbortSignal): Promise<Blobs<H>> {
  const buffer = await (await request(path, signal ? { signal } : {})).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as H & {
    arrays: ArrayPlace[];
  };
  const arrays: Record<string, Packed> = {};
  for (const { name, dtype, shape, offset } of header.arrays) {
    const size = shape.reduce((product, side) => product * side, 1);
    arrays[name] = new VIEWS[dtype](buffer, 4 + length + offset, size);
  }
  return { header, arrays };
}
