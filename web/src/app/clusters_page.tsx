/** Inspect clusters: map, table, histograms and silhouettes that select rows together. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../dom";
import { editionOf, get, type Result, type Run, send } from "./api";
import type { Labels } from "./arrays";
import type { Atlas } from "./atlas";
import { ClusterCard } from "./cluster_card";
import { Fault, IconButton, percent, rove, Swatch, useLoaded } from "./controls";
import { Dendrogram } from "./dendrogram";
import { Filters } from "./filters";
import { Fragment } from "./fragment";
import { MapPanel, useLabels } from "./map_panel";
import { Profiles } from "./profiles";
import { RowsTable } from "./rows_table";
import { Selection } from "./selection";
import { attempt, go, message, ofTable, place, refresh, shown } from "./state";

const CLUSTERS = "clusters"; // name of the filter by cluster

const kept = ofTable<Selection | null>(() => null);

/** The selection is of the rows of a table, and stays when another run or page is shown. */
function selectionOf(rows: number): Selection {
  kept.value ??= new Selection(rows);
  return kept.value;
}

const TABS = ["Rows", "Cluster", "Profiles", "Silhouettes", "Dendrogram", "Reliability"] as const;
type Tab = (typeof TABS)[number];
const tab = signal<Tab>("Rows");

export function ClustersPage() {
  const run = shown.value!;
  const labels = useLabels(run);
  const { value: result } = useLoaded(() => get<Result>(`/api/runs/${run.id}`), [editionOf(run)]);
  const selection = useMemo(() => (labels ? selectionOf(labels.labels.length) : null), [labels]);
  useEffect(() => filterBy(selection, labels, place.peek().cluster), [selection, labels]);
  const atlas = useRef<Atlas | null>(null);
  const choose = (label: number | null) => {
    const next = label === place.value.cluster || label === null || label >= run.names.length ? null : label;
    go({ cluster: next });
    if (next !== null) tab.value = "Cluster";
    filterBy(selection, labels, next);
  };
  return (
    <div class="inspect">
      <div class="side-panel">
        {result && <p class="heading">{result.heading}</p>}
        <ClusterList run={run} result={result} labels={labels} selection={selection} choose={choose} />
      </div>
      <div class="work">
        <MapPanel
          selection={selection}
          labels={labels}
          run={run}
          onPick={choose}
          onAtlas={(made) => (atlas.current = made)}
        />
        {selection && <SelectionBar selection={selection} />}
      </div>
      {selection && labels && <Filters selection={selection} labels={labels} />}
      {selection && <Below run={run} selection={selection} atlas={() => atlas.current} />}
    </div>
  );
}

function filterBy(selection: Selection | null, labels: Labels | null, label: number | null): void {
  if (!selection || !labels) return;
  if (label === null || label >= labels.names.length) {
    selection.remove(CLUSTERS);
    return;
  }
  const allowed = new Uint8Array(65536);
  allowed[label] = 1;
  selection.byCode(CLUSTERS, labels.labels, allowed);
}

function SelectionBar({ selection }: { selection: Selection }) {
  selection.version.value;
  if (!selection.active) return null;
  return (
    <div class="selection-bar">
      <span role="status">
        <strong>{plural(selection.count, "row")}</strong> selected (
        {percent(selection.count / Math.max(1, selection.rows))})
      </span>
      <button
        type="button"
        class="button"
        onClick={() => {
          selection.clear();
          go({ cluster: null });
        }}
      >
        Select all rows
      </button>
    </div>
  );
}

interface ListProps {
  run: Run;
  result: Result | null;
  labels: Labels | null;
  selection: Selection | null;
  choose: (label: number | null) => void;
}

function ClusterList({ run, result, labels, selection, choose }: ListProps) {
  const [checked, setChecked] = useState<number[]>([]);
  selection?.version.value;
  const all = useMemo(
    () => (labels && selection ? new Selection(selection.rows).counts(labels.labels, 65536) : null),
    [labels],
  );
  const counts = useMemo(
    () => (labels && selection?.active ? selection.counts(labels.labels, 65536, CLUSTERS) : all),
    [labels, selection, selection?.version.value],
  );
  const total = Math.max(1, ...run.sizes);
  const silhouette = new Map(result?.clusters.map((cluster) => [cluster.label, cluster.silhouette]));
  const merge = async () => {
    const made = await attempt("names", () =>
      send<{ id: string }>("POST", `/api/runs/${run.id}/edit`, { merge: checked }),
    );
    if (!made) return;
    setChecked([]);
    go({ cluster: null });
    message.value = "Clusters merged.";
    await refresh();
  };
  return (
    <section class="group" aria-label="Clusters">
      <h2>
        Clusters
        {checked.length > 1 && (
          <button type="button" class="button small" onClick={() => void merge()}>
            Merge {checked.length}
          </button>
        )}
      </h2>
      <Fault field="names" />
      <div class="list-head" aria-hidden="true">
        <span>rows</span>
        <span>silhouette</span>
      </div>
      <ul class="cluster-list" onKeyDown={rove}>
        {run.names.map((name, j) => {
          const isChosen = place.value.cluster === j;
          const share = counts && all ? counts[j]! / Math.max(1, all[j]!) : 1;
          return (
            <li key={j} class={isChosen ? "chosen" : ""}>
              <input
                type="checkbox"
                aria-label={`Mark cluster ${name} to merge it`}
                checked={checked.includes(j)}
                onChange={() =>
                  setChecked(
                    checked.includes(j) ? checked.filter((one) => one !== j) : [...checked, j].sort((a, b) => a - b),
                  )
                }
              />
              <button
                type="button"
                data-stop
                tabIndex={j === (place.value.cluster ?? 0) ? 0 : -1}
                aria-pressed={isChosen}
                onClick={() => choose(j)}
              >
                <Swatch color={run.colors[j]!} />
                <span class="name" title={name}>
                  {name}
                </span>
                <span class="num">{run.sizes[j]!.toLocaleString("en")}</span>
                <span class="num muted">{silhouette.get(j)?.toFixed(2) ?? ""}</span>
                <svg class="size" aria-hidden="true" viewBox="0 0 100 5" preserveAspectRatio="none">
                  <rect class="ghost" width={(100 * run.sizes[j]!) / total} height="5" fill={run.colors[j]!} />
                  <rect width={((100 * run.sizes[j]!) / total) * share} height="5" fill={run.colors[j]!} />
                </svg>
              </button>
            </li>
          );
        })}
      </ul>
      {run.noise ? <p class="muted">{plural(run.noise, "row")} in no cluster</p> : null}
      <p class="help">Click a cluster to select its rows. Mark two or more to merge them.</p>
    </section>
  );
}

interface BelowProps {
  run: Run;
  selection: Selection;
  atlas: () => Atlas | null;
}

function Below({ run, selection, atlas }: BelowProps) {
  const listed = TABS.filter((name) => name !== "Dendrogram" || run.tree);
  const chosen = listed.includes(tab.value) ? tab.value : "Rows";
  const { cluster } = place.value;
  return (
    <section class="below" aria-label="Details">
      <div class="tabs" role="tablist" aria-label="Details" onKeyDown={(event) => rove(event, "[role=tab]")}>
        {listed.map((name) => (
          <button
            key={name}
            type="button"
            class="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === chosen}
            aria-controls="below-panel"
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => (tab.value = name)}
          >
            {name === "Cluster" && cluster !== null ? `Cluster ${run.names[cluster] ?? cluster}` : name}
          </button>
        ))}
      </div>
      <div id="below-panel" role="tabpanel" aria-labelledby={`tab-${chosen}`}>
        {chosen === "Rows" && <RowsTable run={run} selection={selection} ring={(row) => atlas()?.ring(row)} />}
        {chosen === "Cluster" &&
          (cluster === null || cluster >= run.names.length ? (
            <p class="muted">Click a cluster in the list or on the map.</p>
          ) : (
            <ClusterCard key={`${run.id} ${cluster}`} run={run} label={cluster} />
          ))}
        {chosen === "Profiles" && <Profiles run={run} selection={selection} />}
        {chosen === "Silhouettes" && <Fragment run={run} chart="silhouettes" />}
        {chosen === "Dendrogram" && <Dendrogram run={run} />}
        {chosen === "Reliability" && (
          <>
            <Fragment run={run} chart="cards" />
            <Fragment run={run} chart="reliability" />
            <Fragment run={run} chart="checks" />
            <Fragment run={run} chart="convergence" />
          </>
        )}
      </div>
    </section>
  );
}

/** A button that ends a filter. */
export function ClearFilter({ selection, name, label }: { selection: Selection; name: string; label: string }) {
  if (!selection.has(name)) return null;
  return <IconButton label={`End the selection by ${label}`} icon="close" onClick={() => selection.remove(name)} />;
}
