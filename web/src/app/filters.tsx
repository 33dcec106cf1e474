/** Histograms of columns: they show the selected rows, and a range of values selects rows. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { oncePerFrame } from "../dom";
import { type Coded, type Labels, loadValues, MISSING, UNKNOWN } from "./arrays";
import { ClearFilter } from "./clusters_page";
import { Swatch, useLoaded, valueText } from "./controls";
import type { Selection } from "./selection";
import { table } from "./state";

const BINS = 64;
const AT_ONCE = 8; // histograms, which the page recounts at every change of the selection
const CATEGORIES = 6;
const MANY = 60; // different texts of a column that is not used

export function Filters({ selection, labels }: { selection: Selection; labels: Labels }) {
  const columns = table.value!.columns.filter(
    ({ kind, role, distinct }) =>
      role === "feature" || (role !== "id" && kind !== "empty" && (kind !== "text" || (distinct ?? MANY) < MANY)),
  );
  const ordered = [
    ...columns.filter(({ role }) => role === "feature"),
    ...columns.filter(({ role }) => role !== "feature"),
  ];
  const [count, setCount] = useState(AT_ONCE);
  const silhouette = useMemo(() => silhouettes(labels), [labels]);
  return (
    <aside class="filters" aria-label="Selection by column">
      <h2>Select by value</h2>
      {silhouette && <Histogram coded={silhouette} selection={selection} />}
      {ordered.slice(0, count).map(({ name }) => (
        <ColumnFilter key={name} name={name} selection={selection} />
      ))}
      {ordered.length > count && (
        <button type="button" class="button" onClick={() => setCount(count + AT_ONCE)}>
          More columns ({ordered.length - count})
        </button>
      )}
    </aside>
  );
}

/** The silhouettes as if they were a column. */
function silhouettes({ silhouettes: values }: Labels): Coded | null {
  if (!values) return null;
  const codes = new Uint8Array(values.length);
  for (let i = 0; i < codes.length; i++) {
    codes[i] = values[i] === UNKNOWN ? MISSING : Math.min(BINS - 1, ((values[i]! + 100) * BINS) / 200);
  }
  return {
    name: "silhouette",
    codes,
    bounds: Array.from({ length: BINS + 1 }, (_, i) => (2 * i) / BINS - 1),
    labels: null,
  };
}

function ColumnFilter({ name, selection }: { name: string; selection: Selection }) {
  const { value, error } = useLoaded(() => loadValues(name), [name]);
  if (error || value?.bounds?.length === 0) return null; // no numbers
  if (!value) return <div class="histogram waiting">{name}</div>;
  return value.labels ? (
    <Categories coded={value} selection={selection} />
  ) : (
    <Histogram coded={value} selection={selection} />
  );
}

function useCounts(coded: Coded, selection: Selection, filter: string) {
  const all = useMemo(() => count(coded.codes), [coded]);
  const version = selection.version.value;
  const selected = useMemo(
    () => (selection.active ? selection.counts(coded.codes, 256, filter) : all),
    [coded, selection, version],
  );
  return { all, selected };
}

function count(codes: Uint8Array): Uint32Array {
  const counts = new Uint32Array(256);
  for (let i = 0; i < codes.length; i++) counts[codes[i]!]!++;
  return counts;
}

function Histogram({ coded, selection }: { coded: Coded; selection: Selection }) {
  const filter = `column ${coded.name}`;
  const { all, selected } = useCounts(coded, selection, filter);
  const bins = coded.bounds!.length - 1;
  const [range, setRange] = useState<[number, number] | null>(null); // first bin, and the one after the last
  const chart = useRef<SVGSVGElement>(null);
  const isOn = selection.has(filter);
  useEffect(() => {
    if (!isOn) setRange(null);
  }, [isOn]);
  const apply = (low: number, high: number) => {
    const next: [number, number] = [Math.max(0, Math.min(low, high)), Math.min(bins, Math.max(low, high))];
    setRange(next);
    if (next[0] === 0 && next[1] === bins) {
      selection.remove(filter);
      return;
    }
    const allowed = new Uint8Array(256);
    allowed.fill(1, next[0], next[1]);
    selection.byCode(filter, coded.codes, allowed);
  };
  const bin = (event: PointerEvent) => {
    const { left, width } = chart.current!.getBoundingClientRect();
    return Math.max(0, Math.min(bins, Math.round((bins * (event.clientX - left)) / width)));
  };
  const drag = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const target = chart.current!;
    target.setPointerCapture(event.pointerId);
    const from = bin(event);
    let to = from;
    const draw = oncePerFrame(() => {
      if (to !== from) apply(from, to);
    });
    const move = (next: PointerEvent) => {
      to = bin(next);
      draw();
    };
    target.addEventListener("pointermove", move);
    const end = () => {
      target.removeEventListener("pointermove", move);
      if (to === from) selection.remove(filter);
    };
    target.addEventListener("pointerup", end, { once: true });
  };
  const [low, high] = range ?? [0, bins];
  const most = Math.max(1, ...all.subarray(0, bins));
  const value = (edge: number) => valueText(coded.bounds![edge]!);
  return (
    <div class="histogram">
      <div class="head">
        <span class="name" title={coded.name}>
          {coded.name}
        </span>
        <span class="muted num">
          {value(low)} to {value(high)}
        </span>
        <ClearFilter selection={selection} name={filter} label={coded.name} />
      </div>
      <svg ref={chart} viewBox={`0 0 ${bins} 40`} preserveAspectRatio="none" aria-hidden="true" onPointerDown={drag}>
        <path class="all" d={steps(all, bins, most)} />
        <path class="selected" d={steps(selected, bins, most)} />
        {range && <rect class="range" x={low} y={0} width={Math.max(0.5, high - low)} height={40} />}
      </svg>
      <div class="edges">
        {([0, 1] as const).map((side) => (
          <input
            key={side}
            type="range"
            min={0}
            max={bins}
            value={side ? high : low}
            aria-label={`${side ? "Highest" : "Lowest"} ${coded.name}`}
            aria-valuetext={value(side ? high : low)}
            onInput={(event) => {
              const edge = Number(event.currentTarget.value);
              apply(side ? low : Math.min(edge, high - 1), side ? Math.max(edge, low + 1) : high);
            }}
          />
        ))}
      </div>
    </div>
  );
}

function steps(counts: Uint32Array, bins: number, most: number): string {
  let d = "M0,40";
  for (let i = 0; i < bins; i++) d += `V${(40 - (39 * counts[i]!) / most).toFixed(1)}h1`;
  return `${d}V40Z`;
}

function Categories({ coded, selection }: { coded: Coded; selection: Selection }) {
  const filter = `column ${coded.name}`;
  const { all, selected } = useCounts(coded, selection, filter);
  const [chosen, setChosen] = useState<number[]>([]);
  const [isLong, setLong] = useState(false);
  const isOn = selection.has(filter);
  useEffect(() => {
    if (!isOn) setChosen([]);
  }, [isOn]);
  const labels = coded.labels!;
  const most = Math.max(1, ...all.subarray(0, labels.length));
  const toggle = (code: number) => {
    const next = chosen.includes(code) ? chosen.filter((one) => one !== code) : [...chosen, code];
    setChosen(next);
    if (!next.length) {
      selection.remove(filter);
      return;
    }
    const allowed = new Uint8Array(256);
    for (const one of next) allowed[one] = 1;
    selection.byCode(filter, coded.codes, allowed);
  };
  return (
    <div class="histogram categories">
      <div class="head">
        <span class="name" title={coded.name}>
          {coded.name}
        </span>
        <ClearFilter selection={selection} name={filter} label={coded.name} />
      </div>
      {labels.slice(0, isLong ? labels.length : CATEGORIES).map((label, code) => (
        <button
          key={label}
          type="button"
          class="category"
          aria-pressed={chosen.includes(code)}
          onClick={() => toggle(code)}
        >
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect class="all" width={(100 * all[code]!) / most} height="10" />
            <rect class="selected" width={(100 * selected[code]!) / most} height="10" />
          </svg>
          <span class="name">{label}</span>
          <span class="num">{selected[code]!.toLocaleString("en")}</span>
        </button>
      ))}
      {labels.length > CATEGORIES && !isLong && (
        <button type="button" class="link" onClick={() => setLong(true)}>
          {labels.length - CATEGORIES} more
        </button>
      )}
    </div>
  );
}

export function ClusterName({ name, color }: { name: string; color: string }) {
  return (
    <span class="cluster-name">
      <Swatch color={color} />
      {name}
    </span>
  );
}
