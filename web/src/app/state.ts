/** What the page shows: the workspace of the server, and what is chosen here, which the address of the page keeps. */

import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import {
  askAbout,
  type CriterionEvent,
  get,
  Refusal,
  type Run,
  type StepEvent,
  send,
  Unreachable,
  type Workspace,
} from "./api";

export const PAGES = ["data", "fit", "choose", "clusters", "compare", "export"] as const;
export type PageName = (typeof PAGES)[number];
export type MapKind = "axes" | "columns" | "neighbours";

/** What a reload of the page or a shared address brings back. */
export interface Place {
  page: PageName;
  kind: MapKind;
  x: string | null;
  y: string | null;
  cluster: number | null;
  other: string | null; // the run that the current one is compared with
  sort: string | null;
  search: string;
}

const START: Place = {
  page: "data",
  kind: "axes",
  x: null,
  y: null,
  cluster: null,
  other: null,
  sort: null,
  search: "",
};

const renewals: (() => void)[] = [];

/** A value that belongs to the open table: with another table it begins anew. Whatever the page keeps is one of these. */
export function ofTable<T>(make: () => T): Signal<T> {
  const value = signal(make());
  renewals.push(() => {
    value.value = make();
  });
  return value;
}

export const workspace = signal<Workspace | null>(null);
export const place = signal<Place>(readPlace());
renewals.push(() => {
  place.value = { ...START, page: place.peek().page };
});
export const connected = signal(true);
export const denied = signal(false); // the server answers, but another one was started since
export const faults = ofTable<Record<string, string>>(() => ({})); // sentences, by the control that they belong to
export const message = signal(""); // for the live region
export const steps = ofTable<Record<string, StepEvent>>(() => ({}));
export const criteria = ofTable<Record<string, CriterionEvent[]>>(() => ({}));

export const table = computed(() => workspace.value?.table ?? null);
export const preparation = computed(() => workspace.value?.preparation ?? null);
export const runs = computed(() => workspace.value?.runs ?? []);
export const current = computed(() => runs.value.find((run) => run.id === workspace.value?.current) ?? null);
export const active = computed(() => runs.value.find(isActive) ?? null);
const hasClusters = (run: Run) => run.status === "done" && run.sizes.length > 0;
/** The run whose clusters are shown: the current one, or the last one that has some. */
export const shown = computed(() =>
  current.value && hasClusters(current.value) ? current.value : (runs.value.findLast(hasClusters) ?? null),
);

export function isActive(run: Run): boolean {
  return run.status === "running" || run.status === "queued";
}

export function go(change: Partial<Place>): void {
  place.value = { ...place.value, ...change };
}

function readPlace(): Place {
  const [path, search] = location.hash.slice(1).split("?");
  const given = new URLSearchParams(search ?? "");
  const page = PAGES.find((name) => path === `/${name}`) ?? START.page;
  const kind = (["axes", "columns", "neighbours"] as const).find((name) => name === given.get("map")) ?? START.kind;
  const cluster = given.get("cluster");
  return {
    page,
    kind,
    x: given.get("x"),
    y: given.get("y"),
    cluster: cluster === null ? null : Number(cluster),
    other: given.get("with"),
    sort: given.get("sort"),
    search: given.get("search") ?? "",
  };
}

function hashOf({ page, kind, x, y, cluster, other, sort, search }: Place): string {
  const parts = new URLSearchParams();
  if (kind !== START.kind) parts.set("map", kind);
  for (const [name, value] of Object.entries({ x, y, cluster, with: other, sort, search })) {
    if (value !== null && value !== "") parts.set(name, String(value));
  }
  const rest = parts.toString();
  return `#/${page}${rest ? `?${rest}` : ""}`;
}

let lastPage = place.peek().page;
effect(() => {
  const hash = hashOf(place.value);
  if (hash === location.hash) return;
  if (place.value.page !== lastPage) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  lastPage = place.value.page;
});
addEventListener("popstate", () => {
  place.value = readPlace();
  lastPage = place.value.page;
});

/** Put a sentence beside the control that caused it; null removes it. */
export function setFault(field: string, text: string | null): void {
  const { [field]: _, ...rest } = faults.value;
  faults.value = text === null ? rest : { ...rest, [field]: text };
  if (text) message.value = text;
}

/** Remove all sentences of controls whose settings are sent again. */
export function clearFaults(): void {
  faults.value = {};
}

/** Run something that asks the server; what goes wrong is shown beside its control, or beside `field`. */
export async function attempt<T>(field: string, task: () => Promise<T>): Promise<T | null> {
  setFault(field, null);
  try {
    return await task();
  } catch (error) {
    if (error instanceof Refusal) setFault(error.field ?? field, error.message);
    else if (error instanceof Unreachable) connected.value = false;
    else throw error;
    return null;
  }
}

/** What a workspace lacks while the server loads its libraries. */
const LOADING: Partial<Workspace> = {
  budgets: [],
  folder: [],
  preparation: null,
  can_undo: null,
  can_redo: null,
  problem: null,
};

/** Take a newer workspace; any, if the server was away: another one may have begun to count anew. */
export function take(given: Workspace): void {
  if (connected.peek() && given.revision < (workspace.peek()?.revision ?? -1)) return;
  const before = workspace.peek();
  const id = given.table?.id ?? null;
  askAbout(id);
  batch(() => {
    if (before?.ready && (before.table?.id ?? null) !== id) for (const renew of renewals) renew();
    workspace.value = { ...LOADING, ...given };
    connected.value = true;
    denied.value = false;
  });
}

export async function refresh(): Promise<void> {
  try {
    take(await get<Workspace>("/api/workspace"));
  } catch (error) {
    if (!(error instanceof Unreachable || error instanceof Refusal)) throw error;
    connected.value = false;
    denied.value = error instanceof Refusal && error.status === 401;
  }
}

/** Post a change and take the workspace that comes back. */
export async function change(field: string, path: string, body: unknown): Promise<boolean> {
  const answer = await attempt(field, () => send<Workspace>("POST", path, body));
  if (answer) take(answer);
  return answer !== null;
}

export async function undo(): Promise<void> {
  if (await change("history", "/api/undo", {})) message.value = "Undone.";
}

export async function redo(): Promise<void> {
  if (await change("history", "/api/redo", {})) message.value = "Redone.";
}

export async function choose(run: string): Promise<void> {
  await attempt("history", () => send("POST", "/api/current", { run }));
  await refresh();
}

export async function cancel(run: string): Promise<void> {
  await attempt("run", () => send("DELETE", `/api/runs/${run}`));
  await refresh();
}

function takeRun(run: Run): void {
  const given = workspace.value;
  if (!given) return;
  const known = given.runs.some((one) => one.id === run.id);
  const list = known ? given.runs.map((one) => (one.id === run.id ? run : one)) : [...given.runs, run];
  workspace.value = { ...given, runs: list };
  if (run.status === "done") message.value = `${run.title}: done.`;
  if (run.status === "failed" && run.error) setFault(run.error.field ?? "run", run.error.message);
}

function takeProgress({ run, ...progress }: { run: string } & NonNullable<Run["progress"]>): void {
  const given = workspace.value;
  if (!given) return;
  workspace.value = { ...given, runs: given.runs.map((one) => (one.id === run ? { ...one, progress } : one)) };
}

function takeCriterion(event: CriterionEvent): void {
  const earlier = (criteria.value[event.run] ?? []).filter((one) => one.criterion !== event.criterion);
  criteria.value = { ...criteria.value, [event.run]: [...earlier, event] };
}

/** Follow the events of the server; where they end, ask again until it answers. */
export function follow(): void {
  const source = new EventSource("/api/events");
  const on = <T>(name: string, act: (data: T) => void) =>
    source.addEventListener(name, (event) => {
      const data = JSON.parse((event as MessageEvent<string>).data) as T & { table?: string };
      if (data.table === undefined || data.table === table.peek()?.id) act(data);
    });
  on<{ revision: number }>("workspace", ({ revision }) => {
    if (revision > (workspace.peek()?.revision ?? -1)) void refresh();
  });
  on<Run>("run", takeRun);
  on("progress", takeProgress);
  on<CriterionEvent>("criteria", takeCriterion);
  on<StepEvent>("step", (event) => {
    steps.value = { ...steps.value, [event.run]: event };
  });
  on<{ message: string | null }>("busy", ({ message: busy }) => {
    if (workspace.value) workspace.value = { ...workspace.value, busy };
  });
  on("stopping", () => {
    connected.value = false;
  });
  source.onopen = () => void refresh(); // events before it have not been sent to this page
  source.onerror = () => {
    connected.value = false;
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
  };
}
