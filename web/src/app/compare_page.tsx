/** Two runs side by side: linked maps, how much they agree, and the rows that moved. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../dom";
import { blob, type Comparison, get, query, type Rows, type Run } from "./api";
import type { Atlas } from "./atlas";
import { percent, Scroll, Select, useLoaded } from "./controls";
import { ClusterName } from "./filters";
import { MapPanel } from "./map_panel";
import { RowList } from "./row_list";
import { choose, go, place, runs, shown } from "./state";

const named = (run: Run) => `Run ${run.id.replace(/^r/, "")}: ${run.title}`;

export function ComparePage() {
  const run = shown.value!;
  const others = runs.value.filter((one) => one.id !== run.id && one.status === "done" && one.k);
  if (!others.length) {
    return (
      <div class="empty">
        <p>Comparing needs a second run of the same table.</p>
        <button type="button" class="button main" onClick={() => go({ page: "fit" })}>
          Add another run
        </button>
      </div>
    );
  }
  const other = others.find(({ id }) => id === place.value.other) ?? others.at(-1)!;
  return <Pair key={`${run.id} ${other.id}`} before={run} after={other} others={others} />;
}

function Pair({ before, after, others }: { before: Run; after: Run; others: Run[] }) {
  const { value, error } = useLoaded(
    () => get<Comparison>(`/api/compare?${query({ a: before.id, b: after.id })}`),
    [before.id, after.id],
  );
  const [onlyMoved, setOnlyMoved] = useState(false);
  const { value: moved } = useLoaded(
    () => (onlyMoved ? blob(`/api/compare/moved?${query({ a: before.id, b: after.id })}`) : null),
    [before.id, after.id, onlyMoved],
  );
  const emphasis = onlyMoved && moved ? (Object.values(moved.arrays)[0] as Uint8Array) : null;
  const colors = useMemo(() => matched(before, after, value), [before, after, value]);
  const maps = useRef<[Atlas | null, Atlas | null]>([null, null]);
  const [linked, setLinked] = useState(0);
  useEffect(() => {
    const [one, two] = maps.current;
    if (!one || !two) return;
    one.moved = (box) => two.look(box);
    two.moved = (box) => one.look(box);
  }, [linked]);
  const link = (side: 0 | 1) => (atlas: Atlas | null) => {
    maps.current[side] = atlas;
    if (atlas) setLinked((count) => count + 1);
  };
  const list = [before, ...others].map((run) => ({ value: run.id, text: named(run) }));
  return (
    <div class="compare">
      <div class="bar">
        <Select label="Left" value={before.id} options={list} onChange={(id) => void choose(id)} />
        <Select label="Right" value={after.id} options={list.slice(1)} onChange={(id) => go({ other: id })} />
        <label class="check">
          <input type="checkbox" checked={onlyMoved} onChange={() => setOnlyMoved(!onlyMoved)} />
          Show only rows that moved
        </label>
      </div>
      {error && <p class="fault">{error}</p>}
      {value && <Agreement value={value} />}
      <div class="maps">
        <section aria-label={named(before)}>
          <h2>{named(before)}</h2>
          <MapPanel run={before} emphasis={emphasis} onAtlas={link(0)} label={`Map of ${named(before)}`} />
        </section>
        <section aria-label={named(after)}>
          <h2>{named(after)}</h2>
          <MapPanel
            run={after}
            colors={colors}
            emphasis={emphasis}
            onAtlas={link(1)}
            label={`Map of ${named(after)}`}
            tools={false}
          />
        </section>
      </div>
      {value && <Matched before={before} after={after} value={value} colors={colors} />}
      {value && value.moved > 0 && <Moved before={before} after={after} value={value} colors={colors} />}
    </div>
  );
}

/** Colours of the clusters on the right: those of the clusters on the left that they match. */
function matched(before: Run, after: Run, value: Comparison | null): string[] {
  if (!value) return after.colors;
  const used = new Set(Object.values(value.matching).map((j) => before.colors[j]));
  const free = [...after.colors, ...before.colors].filter((color) => !used.has(color));
  return after.colors.map((own, j) => {
    const match = value.matching[j];
    if (match !== undefined && match !== null) return before.colors[match] ?? own;
    return used.has(own) ? (free.shift() ?? own) : own;
  });
}

function Agreement({ value }: { value: Comparison }) {
  const cards: [string, string, string][] = [
    ["adjusted Rand index", value.adjusted_rand.toFixed(2), "1: the same clusters, 0: as if at random"],
    [
      "adjusted mutual information",
      value.adjusted_mutual_information.toFixed(2),
      "1: the same clusters, 0: independent",
    ],
    ["agreement", percent(value.agreement), "rows in matching clusters"],
    ["rows that moved", value.moved.toLocaleString("en"), `of ${plural(value.rows, "row")}`],
  ];
  return (
    <div class="cards">
      {cards.map(([label, text, about]) => (
        <div key={label} class="card">
          <div class="label">{label}</div>
          <div class="value">{text}</div>
          <div class="about">{about}</div>
        </div>
      ))}
    </div>
  );
}

function Matched({ before, after, value, colors }: { before: Run; after: Run; value: Comparison; colors: string[] }) {
  const most = Math.max(1, ...value.table.flat());
  const name = (run: Run, label: number) => run.names[label] ?? "no cluster";
  return (
    <section class="group">
      <h2>Rows by cluster of both runs</h2>
      <Scroll label="Rows by cluster of both runs">
        <table class="matched">
          <thead>
            <tr>
              <th>{named(before)}</th>
              <th colSpan={value.after.length}>{named(after)}</th>
            </tr>
            <tr>
              <td />
              {value.after.map((label, j) => (
                <th key={label} class="num">
                  <ClusterName name={name(after, label)} color={colors[label] ?? colors[j] ?? "#9aa1ab"} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {value.before.map((label, i) => (
              <tr key={label}>
                <th scope="row">
                  <ClusterName name={name(before, label)} color={before.colors[label] ?? "#9aa1ab"} />
                </th>
                {value.after.map((other, j) => {
                  const count = value.table[i]![j]!;
                  const style = {
                    background: `color-mix(in srgb, var(--accent) ${Math.round((55 * count) / most)}%, transparent)`,
                  };
                  return (
                    <td key={other} class={`num ${value.matching[other] === label ? "match" : ""}`} style={style}>
                      {count ? count.toLocaleString("en") : ""}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

const LISTED = 50;

function Moved({ before, after, value, colors }: { before: Run; after: Run; value: Comparison; colors: string[] }) {
  const rows = value.moved_rows.slice(0, LISTED);
  const { value: loaded } = useLoaded(() => {
    const one = (run: Run) => get<Rows>(`/api/rows?${query({ run: run.id, rows: rows.join(","), count: LISTED })}`);
    return Promise.all([one(before), one(after)]);
  }, [before.id, after.id, rows.join()]);
  if (!loaded) return null;
  const [left, right] = loaded;
  const other = new Map(right.rows.map(({ row, cluster }) => [row, cluster]));
  const cluster = (run: Run, palette: string[], label: number | null | undefined) =>
    label === null || label === undefined || label < 0 ? (
      <span class="muted">none</span>
    ) : (
      <ClusterName name={run.names[label] ?? String(label)} color={palette[label] ?? "#9aa1ab"} />
    );
  return (
    <section class="group">
      <h2>Rows that moved</h2>
      <RowList
        label="Rows that moved"
        rows={left}
        facts={[
          { title: "left", of: (row) => cluster(before, before.colors, row.cluster) },
          { title: "right", of: (row) => cluster(after, colors, other.get(row.row)) },
        ]}
      />
      {value.moved > rows.length && (
        <p class="muted">
          The first {rows.length} of {plural(value.moved, "row")}.
        </p>
      )}
    </section>
  );
}
